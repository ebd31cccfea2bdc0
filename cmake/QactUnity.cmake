# Torch's headers cost seconds in every file that includes them, precompiled or not: what
# they leave to instantiate is done anew in each. So files that belong together are compiled
# as one, and what they keep in anonymous namespaces must have names of its own.
option(QACT_UNITY "Compile the files of one folder together" ON)

# The files of a folder share a unit; in ops/, those of one operator on the CPU.
function(qact_compile_together target)
  if(NOT QACT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET source STEM operator)
    if(folder MATCHES "/qact/ops(/cpu|/autograd)?$")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "ops_${operator}")
    elseif(NOT folder MATCHES "/cuda$")
      cmake_path(GET folder FILENAME name)
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}")
    endif()
  endforeach()
endfunction()
