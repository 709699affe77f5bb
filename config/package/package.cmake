# What an installation has, and the .deb that CPack makes of it: `cmake --build build --target package_files`, then
# `cpack -G DEB --config build/CPackConfig.cmake`; ./dev package does both.
include(GNUInstallDirs)
set(TM_PACKAGE_FOLDER ${CMAKE_CURRENT_LIST_DIR})
find_package(Python3 COMPONENTS Interpreter)

# Man pages and completions say what the program says.
set(TM_CLI_FILES ${CMAKE_BINARY_DIR}/package)
add_custom_command(
  OUTPUT ${TM_CLI_FILES}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${TM_CLI_FILES}
  COMMAND ${Python3_EXECUTABLE} ${TM_PACKAGE_FOLDER}/describe_cli.py $<TARGET_FILE:tensormill> ${TM_CLI_FILES}
  COMMAND ${CMAKE_COMMAND} -E touch ${TM_CLI_FILES}/stamp
  DEPENDS tensormill ${TM_PACKAGE_FOLDER}/describe_cli.py VERBATIM)
add_custom_target(package_files DEPENDS ${TM_CLI_FILES}/stamp tensormill_shared)

install(TARGETS tensormill RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Runtimes for bundles of other architectures: config/package/make puts there those whose compilers it finds.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/runtimes)
install(DIRECTORY ${CMAKE_BINARY_DIR}/runtimes/ DESTINATION lib/tensormill FILES_MATCHING PATTERN "tensormill-runtime-*.o")
install(DIRECTORY ${TM_CLI_FILES}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${TM_CLI_FILES}/bash/ DESTINATION share/bash-completion/completions)
install(DIRECTORY ${TM_CLI_FILES}/zsh/ DESTINATION share/zsh/vendor-completions)
install(DIRECTORY ${TM_CLI_FILES}/fish/ DESTINATION share/fish/vendor_completions.d)
install(FILES ${TM_PACKAGE_FOLDER}/tensormill.service DESTINATION lib/systemd/system)
install(FILES ${TM_PACKAGE_FOLDER}/tensormill.toml DESTINATION /etc/tensormill)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/tensormill RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tensormill)
set(CPACK_PACKAGE_VENDOR TensorMill)
set(CPACK_PACKAGE_CONTACT "TensorMill <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles trained models to fast packages and serves them over HTTP")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/dist)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd")
# What is loaded when it is needed.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libpq5 (>= 14), libhdf5-103-1, libcurl4")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_BINARY_DIR}/deb/conffiles "/etc/tensormill/tensormill.toml\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${TM_PACKAGE_FOLDER}/postinst ${TM_PACKAGE_FOLDER}/prerm ${TM_PACKAGE_FOLDER}/postrm
    ${CMAKE_BINARY_DIR}/deb/conffiles)
include(CPack)
