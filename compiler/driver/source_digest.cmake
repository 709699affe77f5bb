# cmake -DROOT=<checkout> -DOUT=<header> -P: writes the digest of the compiler's sources. That of a package's cache key:
# who changes what compiles changes it, and nothing that was made before is taken for what would be made now.
# SHA-256 over "SHA-256-of-the-file  path\n" of each file, sorted by path, as sha256sum prints it.
set(files)
foreach(folder compiler runtime/abi)
  file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/*)
  list(APPEND files ${found})
endforeach()
list(FILTER files INCLUDE REGEX "\\.(cc|h|def|fbs|txt|cmake)$")
list(SORT files)
set(lines "")
foreach(file ${files})
  file(SHA256 ${ROOT}/${file} digest)
  string(APPEND lines "${digest}  ${file}\n")
endforeach()
string(SHA256 digest "${lines}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "#define TM_COMPILER_SOURCES \"${digest}\"\n")
