# Embeds the report's style, its script and Vega's scripts in a target.
#
# Vega's come from the package vl-convert-python of the Python that QACT_PYTHON names, or
# from a file that scripts/vega_bundle.py wrote elsewhere: QACT_VEGA_BUNDLE.

set(QACT_VEGA_BUNDLE "" CACHE FILEPATH "A file written by scripts/vega_bundle.py; default: made here")

function(qact_embed_report target)
  set(assets "${CMAKE_CURRENT_SOURCE_DIR}/report/assets")
  if(QACT_VEGA_BUNDLE)
    set(QACT_VEGA_BUNDLE_FILE "${QACT_VEGA_BUNDLE}")
  else()
    if(NOT QACT_PYTHON)
      set(QACT_PYTHON python3)
    endif()
    execute_process(
      COMMAND "${QACT_PYTHON}" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('vl_convert'))"
      RESULT_VARIABLE missing ERROR_QUIET)
    if(missing)
      message(FATAL_ERROR
        "The report needs vl-convert-python, which ${QACT_PYTHON} (QACT_PYTHON) does not have. Run:\n"
        "  ${QACT_PYTHON} -m pip install vl-convert-python==1.9.0.post1\n"
        "or set QACT_VEGA_BUNDLE to a file that scripts/vega_bundle.py wrote elsewhere.")
    endif()
    set(QACT_VEGA_BUNDLE_FILE "${CMAKE_BINARY_DIR}/vega_bundle.js")
    set(script "${PROJECT_SOURCE_DIR}/scripts/vega_bundle.py")
    add_custom_command(OUTPUT "${QACT_VEGA_BUNDLE_FILE}"
      COMMAND "${QACT_PYTHON}" "${script}" "${QACT_VEGA_BUNDLE_FILE}"
      DEPENDS "${script}" VERBATIM)
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/embed_report.S")
  configure_file("${assets}/embed.S.in" "${source}" @ONLY)
  set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS
    "${assets}/page.css;${assets}/page.js;${QACT_VEGA_BUNDLE_FILE}")
  target_sources(${target} PRIVATE "${source}")
endfunction()
