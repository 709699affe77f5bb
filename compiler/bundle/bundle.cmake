# This program holds the runtime for bundles of its own architecture, and the header that goes with it.
tm_library(compiler_bundle FOLDER bundle
           DEPS runtime_base runtime_package compiler_target compiler_codegen)
set(TM_RUNTIME_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime.o)
set(TM_INTERFACE_HEADER ${PROJECT_SOURCE_DIR}/runtime/capi/tensormill.h)
if(TARGET tensormill_shared)
  include(${PROJECT_SOURCE_DIR}/runtime/runtime_object.cmake)
  tm_runtime_object(${TM_RUNTIME_OBJECT} OBJECTS $<TARGET_OBJECTS:tensormill_shared> LIBRARIES ${TM_STATIC_CRYPTO}
                    NEEDS SHA256_Init)
else()
  # A sanitizer's own symbols come with the program: there are no bundles.
  file(WRITE ${TM_RUNTIME_OBJECT} "")
endif()
configure_file(bundle/runtime_object.cc.in ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc @ONLY)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc PROPERTIES
                            OBJECT_DEPENDS "${TM_RUNTIME_OBJECT};${TM_INTERFACE_HEADER}")
target_sources(compiler_bundle PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/bundle/runtime_object.cc)
