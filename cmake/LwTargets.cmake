# Helpers that keep the target files short.

# Warnings, and sanitizers when asked for, on one target.
function(lw_warnings target)
  set(flags -Wall -Wextra -Wshadow -Wpointer-arith -Wundef)
  set(c_only -Wstrict-prototypes -Wmissing-prototypes -pedantic)
  if(LW_WERROR)
    list(APPEND flags -Werror)
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:C>:${flags};${c_only}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>")
  if(LW_WERROR)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  endif()
  if(LW_SANITIZE)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:-fsanitize=${LW_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
    target_link_options(${target} PUBLIC -fsanitize=${LW_SANITIZE})
  endif()
endfunction()

# What the compiler and linker can do against mistakes that remain: checked copies, stack protectors, a table of
# functions that is read-only once the program has started. Not for the vector kernels, which copy no input
# whose length they do not know.
function(lw_hardening target)
  if(NOT LW_SANITIZE)
    set(flags -fstack-protector-strong)
    if(CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo|MinSizeRel") # needs an optimizing build
      list(APPEND flags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    endif()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${flags}>")
  endif()
  if(CMAKE_SYSTEM_NAME STREQUAL Linux)
    target_link_options(${target} PUBLIC -Wl,-z,relro,-z,now,-z,noexecstack)
  endif()
endfunction()

# Whether the processor of this machine has the instruction set of lw_isa_source()'s name.
function(lw_runs_here isa out)
  set(feature "")
  if(isa MATCHES "^(avx512vnni|avx512bw|avx2)")
    set(feature ${CMAKE_MATCH_1})
  elseif(isa MATCHES "^amx")
    set(feature amx-int8)
  endif()
  set(${out} ON PARENT_SCOPE)
  if(feature)
    include(CheckCSourceRuns)
    string(MAKE_C_IDENTIFIER LW_RUNS_${feature} result)
    set(CMAKE_REQUIRED_QUIET ON)
    check_c_source_runs("int main(void) { return !__builtin_cpu_supports(\"${feature}\"); }" ${result})
    set(${out} ${${result}} PARENT_SCOPE)
  endif()
endfunction()

# lw_isa_source(TARGET file.c ISA flags...): compiles file.c once more with -DLW_ISA_<ISA> and the given
# flags, so that one kernel source serves every instruction set (the run-time choice is the caller's).
# Sanitizers look at the code that this processor can run: what cannot run here is built without them, and the rest
# with less optimization and as one copy of a loop where plain builds have one per case (LW_ONE_COPY), for with them
# these files take longest of all to compile.
function(lw_isa_source target file isa)
  set(object ${target}-${isa}-${file})
  string(REGEX REPLACE "[^A-Za-z0-9_-]" "_" object ${object})
  add_library(${object} OBJECT ${file})
  target_include_directories(${object} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${object} PRIVATE _GNU_SOURCE LW_ISA_${isa}=1)
  target_compile_options(${object} PRIVATE ${ARGN})
  if(LW_SANITIZE)
    lw_runs_here(${isa} runs)
    # at -O1 GCC no longer sees that loops over a vector's lanes fill all of it
    target_compile_options(${object} PRIVATE -O1 $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_compile_definitions(${object} PRIVATE LW_ONE_COPY=1)
    if(NOT runs)
      set(LW_SANITIZE "")
    endif()
  endif()
  lw_warnings(${object})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
endfunction()
