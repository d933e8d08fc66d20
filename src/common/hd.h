/* hd.h - how a small function is declared once for host C, host C++ and the device. */
#ifndef LW_HD_H
#define LW_HD_H

/* LW_HD: an inline function of a header; under nvcc it exists for host and device. */
#if defined(__CUDACC__)
#define LW_HD static __host__ __device__ __forceinline__
#else
#define LW_HD static inline
#endif

/* The same of a large one that is needed at several places: on a device it is called. */
#if defined(__CUDACC__)
#define LW_HD_CALLED static __host__ __device__ __noinline__
#else
#define LW_HD_CALLED static inline
#endif

#endif
