# The runtime as one relocatable object, which bundles hold: with the C++ library and the unwinder in it, so that a program of any
# compiler links it, and all hidden but the C interface. This program holds it, and the header that goes with it.
tm_library(compiler_bundle FOLDER bundle
           DEPS runtime_base runtime_package compiler_target compiler_codegen compiler_codegen_llvm)
set(TM_RUNTIME_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime.o)
set(TM_INTERFACE_HEADER ${PROJECT_SOURCE_DIR}/runtime/capi/tensormill.h)
if(TARGET tensormill_shared)
  foreach(name stdc++ gcc gcc_eh)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${name}.a OUTPUT_VARIABLE path
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND libraries ${path})
  endforeach()
  set(rooms exec host_ops parallel package memory base)
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:runtime_\\1>" OUTPUT_VARIABLE archives)
  list(TRANSFORM rooms PREPEND runtime_)
  # -d: what is common to all objects becomes data, which can be hidden.
  add_custom_command(
    OUTPUT ${TM_RUNTIME_OBJECT}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${TM_RUNTIME_OBJECT}.whole -Wl,-d -Wl,-u,SHA256_Init -Wl,--gc-sections
            -Wl,--gc-keep-exported $<TARGET_OBJECTS:tensormill_shared>
            -Wl,--whole-archive $<TARGET_FILE:runtime_capi> -Wl,--no-whole-archive
            -Wl,--start-group ${archives} ${TM_STATIC_CRYPTO} ${libraries} -Wl,--end-group
    # GNU's objcopy leaves the C++ library's unique symbols to all programs.
    COMMAND ${TM_LLVM_PREFIX}/bin/llvm-objcopy --strip-debug --wildcard --keep-global-symbol=tm_* ${TM_RUNTIME_OBJECT}.whole
            ${TM_RUNTIME_OBJECT}
    COMMAND ${CMAKE_COMMAND} -E rm ${TM_RUNTIME_OBJECT}.whole
    DEPENDS runtime_capi ${rooms} tensormill_shared COMMAND_EXPAND_LISTS VERBATIM)
else()
  # A sanitizer's own symbols come with the program: there are no bundles.
  file(WRITE ${TM_RUNTIME_OBJECT} "")
endif()
configure_file(bundle/runtime_object.cc.in ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc @ONLY)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc PROPERTIES
                            OBJECT_DEPENDS "${TM_RUNTIME_OBJECT};${TM_INTERFACE_HEADER}")
target_sources(compiler_bundle PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc)
