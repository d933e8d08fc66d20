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

# lw_isa_source(TARGET file.c ISA flags...): compiles file.c once more with -DLW_ISA_<ISA> and the given
# flags, so that one kernel source serves every instruction set (the run-time choice is the caller's).
function(lw_isa_source target file isa)
  set(object ${target}-${isa}-${file})
  string(REGEX REPLACE "[^A-Za-z0-9_-]" "_" object ${object})
  add_library(${object} OBJECT ${file})
  target_include_directories(${object} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${object} PRIVATE _GNU_SOURCE LW_ISA_${isa}=1)
  target_compile_options(${object} PRIVATE ${ARGN})
  lw_warnings(${object})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
endfunction()
