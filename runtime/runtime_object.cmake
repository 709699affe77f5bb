# tm_runtime_object(OUTPUT [OBJECTS object...] [LIBRARIES archive...] [NEEDS symbol...]): the runtime as one relocatable object, which bundles hold
# (compiler/bundle): with the C++ library and the unwinder in it, so that a program of any compiler links it, and all hidden but
# the C interface. OBJECTS come first, LIBRARIES beside the runtime's own archives; NEEDS are taken out of these though nobody asks before.
set(TM_LLVM_PREFIX /usr/lib/llvm-19 CACHE PATH "prefix of LLVM 19 and lld 19")
set(TM_LLVM_TOOLS ${TM_LLVM_PREFIX}/bin CACHE PATH "LLVM's programs for the machine that builds")
function(tm_runtime_object output)
  cmake_parse_arguments(ARG "" "" "OBJECTS;LIBRARIES;NEEDS" ${ARGN})
  list(TRANSFORM ARG_NEEDS PREPEND "-Wl,-u,")
  foreach(name stdc++ gcc gcc_eh)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${name}.a OUTPUT_VARIABLE path
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND ARG_LIBRARIES ${path})
  endforeach()
  set(rooms exec host_ops parallel package memory base)
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:runtime_\\1>" OUTPUT_VARIABLE archives)
  list(TRANSFORM rooms PREPEND runtime_)
  # -d: what is common to all objects becomes data, which can be hidden.
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${output}.whole -Wl,-d ${ARG_NEEDS} -Wl,--gc-sections
            -Wl,--gc-keep-exported ${ARG_OBJECTS}
            -Wl,--whole-archive $<TARGET_FILE:runtime_capi> -Wl,--no-whole-archive
            -Wl,--start-group ${archives} ${ARG_LIBRARIES} -Wl,--end-group
    # GNU's objcopy leaves the C++ library's unique symbols to all programs.
    COMMAND ${TM_LLVM_TOOLS}/llvm-objcopy --strip-debug --wildcard --keep-global-symbol=tm_* ${output}.whole ${output}
    COMMAND ${CMAKE_COMMAND} -E rm ${output}.whole
    DEPENDS runtime_capi ${rooms} ${ARG_OBJECTS} COMMAND_EXPAND_LISTS VERBATIM)
endfunction()
