# Debian packages by CPack, a package a component. scripts/package builds them, packaging/README.md describes them.
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL daemon library development benchmark)
if(NOT SLATE_BUILD_KERNELS OR NOT SLATE_BUILD_BENCH)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL benchmark)
endif()
set(CPACK_PACKAGE_NAME slate)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
# The configuration is outside of the prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)

# A package fits the distribution that it was built on, as libraries have other names elsewhere: so its version says which.
set(distribution unknown)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release lines REGEX "^(ID|VERSION_ID)=")
  list(TRANSFORM lines REPLACE "^[A-Z_]*=\"?([^\"]*)\"?$" "\\1")
  list(JOIN lines "" distribution)
  if(lines MATCHES "^[0-9]")  # the number came first
    list(REVERSE lines)
    list(JOIN lines "" distribution)
  endif()
endif()
set(SLATE_PACKAGE_VERSION "${PROJECT_VERSION}~${distribution}" CACHE STRING "Version of the Debian packages")
set(SLATE_PACKAGE_CONTACT "slate maintainers <slate@packages.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_DEBIAN_PACKAGE_VERSION ${SLATE_PACKAGE_VERSION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${SLATE_PACKAGE_CONTACT})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Dependencies are the packages of the libraries that the programs name. What CUDA brings is in no Debian package: slated
# opens libcuda.so.1 and libslate libnvrtc.so.13 by dlopen, and libcudart.so.13 is found here as slate's own stand-in.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib/cudart)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME slate)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "adduser")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "slate-bench, nvidia-modprobe, nvidia-persistenced")
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "daemon that shares one GPU between CUDA programs
slated owns the GPU's one CUDA context. Programs that slatectl starts send
their CUDA calls to it, unchanged. It measures which kernels run well
together, and gives each its part of the GPU.

A GPU needs NVIDIA's driver 580 or later (libcuda.so.1), from a package or
from NVIDIA's installer. The assembler ptxas of the CUDA Toolkit 13 is used
where it is installed. Without a GPU slated runs programs on a simulator.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libslate0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS slate)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "stand-in for the CUDA runtime that shares a GPU
Programs that are linked with libslate in libcudart's place send their CUDA
calls to slated, which shares a GPU between them.

The functions of slate.h that compile CUDA C++ need libnvrtc.so.13 of the
CUDA Toolkit, or NVIDIA's package of it.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libslate-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libslate0 (= ${SLATE_PACKAGE_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "files to build programs with libslate
The header slate.h, the link for the linker, and what pkg-config and CMake
need.

Programs of the CUDA runtime need the headers, and mostly nvcc, of the CUDA
Toolkit 13.")

set(CPACK_DEBIAN_BENCHMARK_PACKAGE_NAME slate-bench)
set(CPACK_DEBIAN_BENCHMARK_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_BENCHMARK_PACKAGE_DEPENDS "slate (= ${SLATE_PACKAGE_VERSION}), python3:any")
set(CPACK_DEBIAN_BENCHMARK_PACKAGE_RECOMMENDS "python3-matplotlib, python3-tqdm")
set(CPACK_DEBIAN_BENCHMARK_DESCRIPTION "benchmarks of slate against its rivals
slate-bench runs CUDA programs alone, in pairs and in mixes: natively, under
NVIDIA's MPS, and under slate. It brings 27 small programs.

Native runs and MPS need a GPU, NVIDIA's driver, and libcudart.so.13 of the
CUDA Toolkit on the loader's path. Runs under slate bring what they need.")

# What every package of Debian's has: its licence, its changes, and what it does when it comes and goes.
string(TIMESTAMP SLATE_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
find_program(SLATE_GZIP gzip REQUIRED)
set(SLATE_BENCH_FOLDER ${CMAKE_INSTALL_FULL_LIBDIR}/slate/bench)
set(scripts ${CMAKE_CURRENT_BINARY_DIR}/debian)
foreach(script postinst prerm postrm bench.postinst bench.prerm)
  string(REGEX REPLACE "^bench\\." "bench/" place ${script})
  configure_file(debian/${script}.in ${scripts}/${place} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
file(WRITE ${scripts}/conffiles "/etc/slate/slated.toml\n")
# Not by CPack, which would offer the stand-ins of the package slate to others, too.
file(WRITE ${scripts}/shlibs "libslate 0 libslate0 (>= ${SLATE_PACKAGE_VERSION})\n")
file(WRITE ${scripts}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${scripts}/shlibs ${scripts}/triggers)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
  ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm ${scripts}/conffiles)
set(CPACK_DEBIAN_BENCHMARK_PACKAGE_CONTROL_EXTRA ${scripts}/bench/postinst ${scripts}/bench/prerm)

if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
  foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} COMPONENT)
    set(package ${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
    configure_file(debian/changelog.in ${scripts}/${package}.changelog @ONLY)
    execute_process(COMMAND ${SLATE_GZIP} -9n -c ${scripts}/${package}.changelog
      OUTPUT_FILE ${scripts}/${package}.changelog.gz COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${scripts}/${package}.changelog.gz DESTINATION share/doc/${package} RENAME changelog.gz
            COMPONENT ${component})
    install(FILES debian/copyright DESTINATION share/doc/${package} COMPONENT ${component})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/${package}.lintian-overrides)
      install(FILES debian/${package}.lintian-overrides DESTINATION share/lintian/overrides RENAME ${package}
              COMPONENT ${component})
    endif()
  endforeach()
endif()
include(CPack)

# `cmake --build --preset package --target slate_packages`
set(packaged slated slatectl slate-inject slate slate_cudart slate_driver slate_documented_config slate_man)
if(benchmark IN_LIST CPACK_COMPONENTS_ALL)
  list(APPEND packaged green_pair form_bench)
  foreach(name ${SLATE_KERNEL_PROGRAMS})
    list(APPEND packaged ${name}_shared ${name}_green)
  endforeach()
endif()
add_custom_target(slate_packages COMMAND ${CMAKE_CPACK_COMMAND} --config ${CMAKE_BINARY_DIR}/CPackConfig.cmake
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR} USES_TERMINAL VERBATIM)
add_dependencies(slate_packages ${packaged})
