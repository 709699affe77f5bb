# libtensormill.so: the C interface as one file that a program of any compiler, or Python, opens. It exports the
# functions of tensormill.h alone and needs the C library and libgcc_s alone: what else it uses is linked into it and hidden, so that it
# lives beside another C++ runtime or OpenSSL in the same process. It decodes no pictures and has no regular expressions, as
# a runtime for another machine: a step of a package that needs them is refused by name.
find_library(TM_STATIC_CRYPTO libcrypto.a REQUIRED)
add_library(tensormill_shared SHARED host_ops/picture_steps.cc host_ops/pattern.cc)
target_include_directories(tensormill_shared PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(tensormill_shared PROPERTIES OUTPUT_NAME tensormill VERSION ${PROJECT_VERSION} SOVERSION 0
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
                      LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/capi/tensormill.map)
# What stands first is taken: the two files before the room's own, the static library before the shared one, of which
# nothing is needed then.
target_link_libraries(tensormill_shared PRIVATE
  $<LINK_LIBRARY:WHOLE_ARCHIVE,runtime_capi> runtime_exec runtime_host_ops ${TM_STATIC_CRYPTO})
# The room that asks for the digest comes behind the library that has it: -u.
target_link_options(tensormill_shared PRIVATE -Wl,-u,SHA256_Init -static-libstdc++ -Wl,--as-needed
                    -Wl,--gc-sections -Wl,--no-undefined
                    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/capi/tensormill.map)

# What a program needs that embeds the runtime: find_package(tensormill), or pkg-config.
include(CMakePackageConfigHelpers)
target_include_directories(tensormill_shared INTERFACE $<INSTALL_INTERFACE:include>)
set_target_properties(tensormill_shared PROPERTIES EXPORT_NAME tensormill)
configure_file(capi/tensormill.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tensormill.pc @ONLY)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tensormill-config-version.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS tensormill_shared EXPORT tensormill COMPONENT dev LIBRARY DESTINATION lib)
install(FILES capi/tensormill.h capi/tensormill.hpp DESTINATION include COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensormill.pc DESTINATION lib/pkgconfig COMPONENT dev)
install(EXPORT tensormill NAMESPACE tensormill:: FILE tensormill-config.cmake DESTINATION lib/cmake/tensormill COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensormill-config-version.cmake DESTINATION lib/cmake/tensormill COMPONENT dev)
