/* inject_cuda.c - linked between the program and the CUDA runtime (by the linker's --wrap), it makes calls
 * fail, limits the device's memory, counts what is left behind, and writes down which kernels ran. For tests
 * only.
 *
 *     LW_CUDA_FAULT=call:N     the N-th call fails, the others work; N 0: none
 *     LW_CUDA_FAULT=lost:N     so do all after it, as after an error that destroys the device's context
 *     LW_CUDA_FAULT=memory:N   the N-th allocation, on the device or of page-locked memory, finds none left
 *     LW_CUDA_FAULT=limit:N    the device has N bytes, and says so
 *     LW_CUDA_FAULT=squeeze:N  another program takes all but N bytes after this one has asked how many
 *     LW_CUDA_TELL=FILE        receives the numbers of calls and allocations, the peak of device memory in
 *                              bytes, and how many allocations, streams and events were not given back
 *     LW_CUDA_KERNELS=FILE     a line is appended for every kernel of the program: launches and name
 *     LW_CUDA_PRETEND=1        no GPU is needed: memory is the host's, kernels do nothing. Results are wrong,
 *                              but what happens after a failing call can be tried on any machine.
 *     LW_CUDA_PART=I/N         only every N-th kernel runs, from the I-th on (from 0); the others do nothing
 *     LW_CUDA_BLOCKS=N         so many blocks of a launch at most, unless its blocks wait for each other
 *
 * CMake takes the names to wrap from the lines that begin with CALL or are given as WRAPPED. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cuda_runtime_api.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_CALL,
    FAULT_LOST,
    FAULT_MEMORY,
    FAULT_LIMIT,
    FAULT_SQUEEZE
} fault_kind;

static fault_kind kind;
static int64_t target;
static bool pretend;
static atomic_long calls, allocations;
static _Thread_local cudaError_t last; /* of a failed launch, for cudaGetLastError() */

/* --- what was taken and not given back --------------------------------------------------------- */
typedef enum thing { DEVICE_MEMORY, HOST_MEMORY, REGISTERED, STREAM, EVENT, GRAPH, THINGS } thing;
static const char *const thing_name[THINGS] = {"device-memory", "host-memory", "registered",
                                               "stream",        "event",       "graph"};
enum { MOST = 1 << 16 };
static struct {
    const void *at;
    int64_t bytes;
    thing what;
} kept[MOST];
static int n_kept;
static int64_t device_bytes, device_peak;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(thing what, const void *at, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (n_kept == MOST)
        abort();
    kept[n_kept].at = at, kept[n_kept].bytes = bytes, kept[n_kept].what = what;
    n_kept++;
    if (what == DEVICE_MEMORY) {
        device_bytes += bytes;
        device_peak = device_bytes > device_peak ? device_bytes : device_peak;
    }
    pthread_mutex_unlock(&lock);
}

static void drop(thing what, const void *at)
{
    pthread_mutex_lock(&lock);
    for (int i = n_kept - 1; i >= 0; i--)
        if (kept[i].what == what && kept[i].at == at) {
            if (what == DEVICE_MEMORY)
                device_bytes -= kept[i].bytes;
            kept[i] = kept[--n_kept];
            break;
        }
    pthread_mutex_unlock(&lock);
}

static bool room_for(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool room = (kind != FAULT_LIMIT && kind != FAULT_SQUEEZE) || device_bytes + bytes <= target;
    pthread_mutex_unlock(&lock);
    return room;
}

/* --- kernels ----------------------------------------------------------------------------------- */
enum { MOST_KERNELS = 1024 };
static struct {
    const void *function;
    const char *name;
    cudaKernel_t handle;
    atomic_long launches;
} kernels[MOST_KERNELS];
static int n_kernels;

static int part, parts = 1;
static unsigned most_blocks = UINT_MAX;

/* Counts it; false for a kernel that is not to run. */
static bool launched(const void *function, cudaKernel_t handle)
{
    for (int i = 0; i < n_kernels; i++)
        if ((function && kernels[i].function == function) || (handle && kernels[i].handle == handle)) {
            if (i % parts != part)
                return false;
            atomic_fetch_add(&kernels[i].launches, 1);
        }
    return !pretend;
}

/* --- set up and tell --------------------------------------------------------------------------- */
static void set_fault(const char *fault)
{
    static const struct {
        const char *name;
        fault_kind kind;
    } names[] = {{"call:", FAULT_CALL},
                 {"lost:", FAULT_LOST},
                 {"memory:", FAULT_MEMORY},
                 {"limit:", FAULT_LIMIT},
                 {"squeeze:", FAULT_SQUEEZE}};
    kind = FAULT_NONE;
    for (size_t i = 0; fault && i < sizeof names / sizeof *names; i++)
        if (strncmp(fault, names[i].name, strlen(names[i].name)) == 0) {
            kind = names[i].kind;
            target = atoll(fault + strlen(names[i].name));
        }
}

__attribute__((constructor)) static void set_up(void)
{
    pretend = getenv("LW_CUDA_PRETEND") != NULL;
    const char *some = getenv("LW_CUDA_PART"), *blocks = getenv("LW_CUDA_BLOCKS");
    if (some && (sscanf(some, "%d/%d", &part, &parts) != 2 || parts < 1))
        abort();
    most_blocks = blocks ? (unsigned)atoi(blocks) : UINT_MAX;
    set_fault(getenv("LW_CUDA_FAULT"));
}

/* In one line: exit code, calls, allocations, peak, and what is left. */
static void tell_job(const char *path, int code)
{
    FILE *file = fopen(path, "a");
    if (!file)
        return;
    int64_t left[THINGS] = {0};
    for (int i = 0; i < n_kept; i++)
        left[kept[i].what]++;
    fprintf(file, "%d\t%ld\t%ld\t%lld\t", code, atomic_load(&calls), atomic_load(&allocations),
            (long long)device_peak);
    for (int i = 0; i < THINGS; i++)
        if (left[i])
            fprintf(file, "%s %lld ", thing_name[i], (long long)left[i]);
    fputc('\n', file);
    fclose(file);
}

/* Appends how often every kernel was launched since the last time. */
static void tell_kernels(void)
{
    const char *path = getenv("LW_CUDA_KERNELS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    static char lines[1 << 20]; /* one write: several processes may append */
    size_t n = 0;
    for (int i = 0; i < n_kernels && n + 1000 < sizeof lines; i++)
        n += (size_t)snprintf(lines + n, 1000, "%ld\t%s\n", atomic_exchange(&kernels[i].launches, 0),
                              kernels[i].name);
    setvbuf(file, NULL, _IONBF, 0);
    fwrite(lines, 1, n, file);
    fclose(file);
}

/* WRAPPED main */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static void redirect(const char *path, int fd)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file < 0 || dup2(file, fd) != fd)
        abort();
    if (file != fd)
        close(file);
}

int __wrap_main(int argc, char **argv)
{
    const char *path = getenv("LW_CUDA_JOBS");
    FILE *jobs = path ? fopen(path, "r") : NULL;
    if (!jobs)
        return __real_main(argc, argv);
    const char *seconds = getenv("LW_CUDA_JOB_SECONDS");
    char line[4096], done[4096];
    snprintf(done, sizeof done, "%s.done", path);
    while (fgets(line, sizeof line, jobs)) {
        char *word[128] = {argv[0]}, *at = line;
        int n = 1;
        line[strcspn(line, "\n")] = 0;
        const char *fault = strsep(&at, "\t"), *out = strsep(&at, "\t"), *err = strsep(&at, "\t");
        while (at && n < 127)
            word[n++] = strsep(&at, "\t");
        if (n < 2)
            abort();
        redirect(out, STDOUT_FILENO);
        redirect(err, STDERR_FILENO);
        stdout = fdopen(STDOUT_FILENO, "w"); /* the program closes it */
        atomic_store(&calls, 0);
        atomic_store(&allocations, 0);
        n_kept = 0;
        device_bytes = device_peak = 0;
        last = cudaSuccess;
        set_fault(fault);
        alarm(seconds ? (unsigned)atoi(seconds) : 0); /* what hangs dies of it */
        int code = __real_main(n, word);
        alarm(0);
        fflush(stdout);
        set_fault(NULL);
        tell_kernels();
        tell_job(done, code);
    }
    fclose(jobs);
    return 0;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("LW_CUDA_TELL");
    if (path)
        tell_job(path, 0);
    tell_kernels();
}

/* Counts a call; true for one that is to fail. */
static bool fails(void)
{
    int64_t n = atomic_fetch_add(&calls, 1) + 1;
    return (kind == FAULT_CALL && n == target) || (kind == FAULT_LOST && target && n >= target);
}

static cudaError_t reason(void)
{
    return kind == FAULT_LOST ? cudaErrorIllegalAddress : cudaErrorUnknown;
}

static bool memory_fails(size_t bytes, bool on_device)
{
    int64_t n = atomic_fetch_add(&allocations, 1) + 1;
    return (kind == FAULT_MEMORY && n == target) || (on_device && !room_for((int64_t)bytes));
}

/* CALL(function, (parameters), (arguments), what it does without a GPU): fails before anything is done. */
#define CALL(name, parameters, arguments, without)                                                           \
    cudaError_t __real_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters                                                                     \
    {                                                                                                        \
        if (fails())                                                                                         \
            return reason();                                                                                 \
        return pretend ? (without) : __real_##name arguments;                                                \
    }
/* ... does what it should, and says that it failed: what waits must not leave the device at work behind the
 * program's back, what gives back must not be taken for a leak. */
#define CALL_DONE(name, parameters, arguments, without)                                                      \
    cudaError_t __real_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters                                                                     \
    {                                                                                                        \
        bool failing = fails();                                                                              \
        cudaError_t code = pretend ? (without) : __real_##name arguments;                                    \
        return failing ? reason() : code;                                                                    \
    }
/* ... gives something that is to be given back. */
#define CALL_TAKES(name, what, parameters, arguments, without)                                               \
    cudaError_t __real_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters                                                                     \
    {                                                                                                        \
        if (fails())                                                                                         \
            return reason();                                                                                 \
        cudaError_t code = pretend ? (without) : __real_##name arguments;                                    \
        if (code == cudaSuccess)                                                                             \
            keep(what, *made, 0);                                                                            \
        return code;                                                                                         \
    }
#define CALL_GIVES(name, what, parameters, arguments, without)                                               \
    cudaError_t __real_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters                                                                     \
    {                                                                                                        \
        bool failing = fails();                                                                              \
        drop(what, it);                                                                                      \
        cudaError_t code = pretend ? (without) : __real_##name arguments;                                    \
        return failing ? reason() : code;                                                                    \
    }
/* ... allocates. */
#define CALL_ALLOCATES(name, what, parameters, arguments)                                                    \
    cudaError_t __real_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters;                                                                    \
    cudaError_t __wrap_##name parameters                                                                     \
    {                                                                                                        \
        bool failing = fails();                                                                              \
        if (failing || memory_fails(size, what == DEVICE_MEMORY))                                            \
            return failing ? reason() : cudaErrorMemoryAllocation;                                           \
        cudaError_t code = pretend ? host_memory((void **)made, size) : __real_##name arguments;             \
        if (code == cudaSuccess)                                                                             \
            keep(what, *made, (int64_t)size);                                                                \
        return code;                                                                                         \
    }

static cudaError_t host_memory(void **made, size_t size)
{
    *made = aligned_alloc(256, (size + 255) / 256 * 256 + 256);
    if (*made)
        memset(*made, 0, size);
    return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t token(void *made)
{
    void *it = malloc(1);
    memcpy(made, &it, sizeof it);
    return it ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t release(void *it)
{
    free(it);
    return cudaSuccess;
}

static cudaError_t copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

static cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                             size_t height)
{
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}

static cudaError_t fill(void *to, int value, size_t size)
{
    memset(to, value, size);
    return cudaSuccess;
}

static cudaError_t number(int *to, int value)
{
    *to = value;
    return cudaSuccess;
}

static cudaError_t properties(struct cudaDeviceProp *to)
{
    memset(to, 0, sizeof *to);
    snprintf(to->name, sizeof to->name, "no GPU");
    to->major = 9;
    to->multiProcessorCount = 4;
    to->totalGlobalMem = (size_t)1 << 32;
    to->sharedMemPerBlockOptin = 227 << 10;
    to->l2CacheSize = 1 << 22;
    return cudaSuccess;
}

static cudaError_t attribute(int *to, enum cudaDeviceAttr which)
{
    *to = which == cudaDevAttrMultiProcessorCount                ? 4
          : which == cudaDevAttrComputeCapabilityMajor           ? 9
          : which == cudaDevAttrMaxSharedMemoryPerBlockOptin     ? 227 << 10
          : which == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? 228 << 10
          : which == cudaDevAttrL2CacheSize                      ? 1 << 22
          : which == cudaDevAttrMemoryPoolsSupported             ? 1
          : which == cudaDevAttrClockRate                        ? 1000000
          : which == cudaDevAttrMaxThreadsPerMultiProcessor      ? 2048
                                                                 : 0;
    return cudaSuccess;
}

static cudaError_t memory_info(size_t *unused, size_t *total)
{
    *unused = *total = (size_t)1 << 32;
    return cudaSuccess;
}

CALL(cudaGetDeviceCount, (int *n), (n), number(n, 1))
CALL(cudaGetDeviceProperties, (struct cudaDeviceProp * p, int device), (p, device), properties(p))
CALL(cudaDeviceGetAttribute, (int *v, enum cudaDeviceAttr a, int device), (v, a, device), attribute(v, a))
CALL(cudaDriverGetVersion, (int *v), (v), number(v, CUDART_VERSION))
CALL(cudaRuntimeGetVersion, (int *v), (v), number(v, CUDART_VERSION))
CALL(cudaSetDevice, (int device), (device), cudaSuccess)
CALL(cudaDeviceGetStreamPriorityRange, (int *low, int *high), (low, high), (number(low, 0), number(high, -5)))
CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device), token(pool))
CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr a, void *v), (pool, a, v),
     cudaSuccess)
CALL(cudaFuncSetAttribute, (const void *f, enum cudaFuncAttribute a, int v), (f, a, v), cudaSuccess)
CALL(cudaMemcpy, (void *to, const void *from, size_t n, enum cudaMemcpyKind k), (to, from, n, k),
     copy(to, from, n))
CALL(cudaMemcpyAsync, (void *to, const void *from, size_t n, enum cudaMemcpyKind k, cudaStream_t s),
     (to, from, n, k, s), copy(to, from, n))
CALL(cudaMemcpy2DAsync,
     (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t w, size_t h,
      enum cudaMemcpyKind k, cudaStream_t s),
     (to, to_pitch, from, from_pitch, w, h, k, s), copy_rows(to, to_pitch, from, from_pitch, w, h))
CALL(cudaMemset, (void *to, int v, size_t n), (to, v, n), fill(to, v, n))
CALL(cudaMemsetAsync, (void *to, int v, size_t n, cudaStream_t s), (to, v, n, s), fill(to, v, n))
CALL(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s), cudaSuccess)
CALL(cudaEventElapsedTime, (float *ms, cudaEvent_t a, cudaEvent_t b), (ms, a, b), (*ms = 0.1F, cudaSuccess))
CALL(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags), (s, e, flags), cudaSuccess)
CALL_DONE(cudaDeviceSynchronize, (void), (), cudaSuccess)
CALL_DONE(cudaStreamSynchronize, (cudaStream_t s), (s), cudaSuccess)
CALL_DONE(cudaEventSynchronize, (cudaEvent_t e), (e), cudaSuccess)
CALL_ALLOCATES(cudaMalloc, DEVICE_MEMORY, (void **made, size_t size), (made, size))
CALL_ALLOCATES(cudaMallocAsync, DEVICE_MEMORY, (void **made, size_t size, cudaStream_t s), (made, size, s))
CALL_ALLOCATES(cudaMallocHost, HOST_MEMORY, (void **made, size_t size), (made, size))
CALL_GIVES(cudaFree, DEVICE_MEMORY, (void *it), (it), release(it))
CALL_GIVES(cudaFreeAsync, DEVICE_MEMORY, (void *it, cudaStream_t s), (it, s), release(it))
CALL_GIVES(cudaFreeHost, HOST_MEMORY, (void *it), (it), release(it))
CALL_GIVES(cudaHostUnregister, REGISTERED, (void *it), (it), cudaSuccess)
CALL_TAKES(cudaStreamCreateWithFlags, STREAM, (cudaStream_t * made, unsigned flags), (made, flags),
           token(made))
CALL_TAKES(cudaStreamCreateWithPriority, STREAM, (cudaStream_t * made, unsigned flags, int p),
           (made, flags, p), token(made))
CALL_GIVES(cudaStreamDestroy, STREAM, (cudaStream_t it), (it), release(it))
CALL_TAKES(cudaEventCreate, EVENT, (cudaEvent_t * made), (made), token(made))
CALL_TAKES(cudaEventCreateWithFlags, EVENT, (cudaEvent_t * made, unsigned flags), (made, flags), token(made))
CALL_GIVES(cudaEventDestroy, EVENT, (cudaEvent_t it), (it), release(it))

CALL(cudaStreamBeginCapture, (cudaStream_t s, enum cudaStreamCaptureMode m), (s, m), cudaSuccess)
CALL_TAKES(cudaGraphInstantiate, GRAPH, (cudaGraphExec_t * made, cudaGraph_t g, unsigned long long flags),
           (made, g, flags), token(made))
CALL(cudaGraphLaunch, (cudaGraphExec_t g, cudaStream_t s), (g, s), cudaSuccess)
CALL_GIVES(cudaGraphExecDestroy, GRAPH, (cudaGraphExec_t it), (it), release(it))
CALL_GIVES(cudaGraphDestroy, GRAPH, (cudaGraph_t it), (it), release(it))

/* WRAPPED cudaStreamEndCapture : ends it in any case, or the stream could never be used again */
cudaError_t __real_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *made);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *made);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *made)
{
    bool failing = fails();
    cudaError_t code = pretend ? token(made) : __real_cudaStreamEndCapture(stream, made);
    if (failing && code == cudaSuccess) {
        if (pretend)
            free(*made);
        else
            __real_cudaGraphDestroy(*made);
        *made = NULL;
    }
    if (failing)
        return reason();
    if (code == cudaSuccess)
        keep(GRAPH, *made, 0);
    return code;
}

/* WRAPPED cudaHostRegister */
cudaError_t __real_cudaHostRegister(void *at, size_t size, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *at, size_t size, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *at, size_t size, unsigned flags)
{
    bool failing = fails();
    if (failing || memory_fails(size, false))
        return failing ? reason() : cudaErrorMemoryAllocation;
    cudaError_t code = pretend ? cudaSuccess : __real_cudaHostRegister(at, size, flags);
    if (code == cudaSuccess)
        keep(REGISTERED, at, (int64_t)size);
    return code;
}

/* WRAPPED cudaMemGetInfo */
cudaError_t __real_cudaMemGetInfo(size_t *unused, size_t *total);
cudaError_t __wrap_cudaMemGetInfo(size_t *unused, size_t *total);
cudaError_t __wrap_cudaMemGetInfo(size_t *unused, size_t *total)
{
    if (fails())
        return reason();
    cudaError_t code = pretend ? memory_info(unused, total) : __real_cudaMemGetInfo(unused, total);
    if (code == cudaSuccess && kind == FAULT_LIMIT) {
        pthread_mutex_lock(&lock);
        *total = (size_t)target;
        *unused = (size_t)(target - device_bytes);
        pthread_mutex_unlock(&lock);
    }
    return code;
}

static dim3 fewer(dim3 grid)
{
    unsigned *of[] = {&grid.x, &grid.y, &grid.z}, left = most_blocks;
    for (int i = 0; i < 3; i++) {
        *of[i] = *of[i] < left ? *of[i] : left;
        left /= *of[i];
    }
    return grid;
}

/* WRAPPED cudaLaunchKernel */
cudaError_t __real_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t s);
cudaError_t __wrap_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t s);
cudaError_t __wrap_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t s)
{
    if (fails())
        return last = reason();
    return launched(f, NULL) ? __real_cudaLaunchKernel(f, fewer(grid), block, args, shared, s) : cudaSuccess;
}

/* WRAPPED cudaLaunchCooperativeKernel */
cudaError_t __real_cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args,
                                               size_t shared, cudaStream_t s);
cudaError_t __wrap_cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args,
                                               size_t shared, cudaStream_t s);
cudaError_t __wrap_cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args,
                                               size_t shared, cudaStream_t s)
{
    if (fails())
        return last = reason();
    launched(f, NULL);
    return pretend ? cudaSuccess : __real_cudaLaunchCooperativeKernel(f, grid, block, args, shared, s);
}

/* WRAPPED __cudaLaunchKernel : of the <<<>>> syntax, which leaves its error to cudaGetLastError() */
cudaError_t __real___cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void **args, size_t shared,
                                      cudaStream_t s);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void **args, size_t shared,
                                      cudaStream_t s);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void **args, size_t shared,
                                      cudaStream_t s)
{
    if (fails())
        return last = reason();
    return launched(NULL, k) ? __real___cudaLaunchKernel(k, fewer(grid), block, args, shared, s)
                             : cudaSuccess;
}

/* WRAPPED cudaGetLastError : never fails itself */
cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
    cudaError_t code = last;
    last = cudaSuccess;
    if (code == cudaSuccess && kind == FAULT_LOST && target && atomic_load(&calls) >= target)
        code = reason();
    return code != cudaSuccess || pretend ? code : __real_cudaGetLastError();
}

/* WRAPPED __cudaGetKernel */
cudaError_t __real___cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __wrap___cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __wrap___cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    cudaError_t code = __real___cudaGetKernel(kernel, function);
    if (pretend) {
        *kernel = (cudaKernel_t)(uintptr_t)function;
        code = cudaSuccess;
    }
    for (int i = 0; i < n_kernels; i++)
        if (kernels[i].function == function)
            kernels[i].handle = *kernel;
    return code;
}

/* WRAPPED __cudaRegisterFunction : before main(), once for every kernel of the program */
void __real___cudaRegisterFunction(void **handle, const char *function, char *device_name, const char *name,
                                   int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __wrap___cudaRegisterFunction(void **handle, const char *function, char *device_name, const char *name,
                                   int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __wrap___cudaRegisterFunction(void **handle, const char *function, char *device_name, const char *name,
                                   int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    if (n_kernels == MOST_KERNELS)
        abort();
    kernels[n_kernels].function = function;
    kernels[n_kernels].name = name;
    n_kernels++;
    __real___cudaRegisterFunction(handle, function, device_name, name, limit, tid, bid, block, grid, warp);
}
