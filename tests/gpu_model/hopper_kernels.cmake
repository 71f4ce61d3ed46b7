# The kernels of the Hopper plans on the host model. What they have in PTX is given by headers of the same names in
# hopper/; of the others, the declarations of shared memory and the empty asm statements, which only hold a compiler
# back, are written anew for a host.
set(templates "${PROJECT_SOURCE_DIR}/templates")
set(host_templates "${CMAKE_CURRENT_BINARY_DIR}/hopper_templates")
file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${templates}" "${templates}/device/cuda/hopper/*.h")
foreach(header IN LISTS headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${templates}/${header}")
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/hopper/${header}")
    continue()
  endif()
  file(READ "${templates}/${header}" text)
  string(REGEX REPLACE "extern __shared__ __align__\\(([0-9]+)\\) unsigned char ([a-z_]+)\\[\\];"
    "unsigned char* const \\2 = gpu_model::dynamic_shared(\\1);" text "${text}")
  string(REGEX REPLACE "__shared__ __align__\\(([0-9]+)\\) ([A-Za-z0-9_]+) ([a-z_]+);"
    "\\2& \\3 = *static_cast<\\2*>(gpu_model::static_shared(sizeof(\\2), \\1));" text "${text}")
  string(REGEX REPLACE "__shared__ __align__\\(([0-9]+)\\) ([A-Za-z0-9_]+) ([a-z_]+)\\[([^]]+)\\];"
    "\\2* const \\3 = static_cast<\\2*>(gpu_model::static_shared(sizeof(\\2) * (\\4), \\1));" text "${text}")
  string(REGEX REPLACE "asm volatile\\(\"\" :[^;]*;" "" text "${text}")
  if(text MATCHES "__shared__|asm[ (]")
    message(FATAL_ERROR "the host model does not know how to write \"${CMAKE_MATCH_0}\" of ${header}")
  endif()
  file(CONFIGURE OUTPUT "${host_templates}/${header}" CONTENT "${text}" @ONLY)
endforeach()

# Compiled as on a device: without the host's warnings.
function(add_hopper_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} BEFORE PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/hopper" "${host_templates}")
  target_include_directories(${name} PRIVATE "${templates}" "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE bilogp_build_options)
  target_compile_options(${name} PRIVATE -w -O1 -ffp-contract=off)
endfunction()

# Tiles of the ring plans by themselves.
set(tiles "")
foreach(LOGITS Float32 Float16 Bfloat16)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/hopper_tiles_${LOGITS}.cpp")
  configure_file(hopper_tiles.cpp.in "${source}" @ONLY)
  set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS
    "BILOGP_DEVICE_HOST_MODEL=1;BILOGP_LOGITS=${LOGITS};BILOGP_ID=i64;BILOGP_VOCAB=0;BILOGP_WARPS=16;BILOGP_NUMERICS=0")
  list(APPEND tiles "${source}")
endforeach()
add_hopper_objects(gpu_model_tiles ${tiles})

# Whole kernels, as the plans have them compiled: operator, variant, type, vocabulary.
set(hopper_kernels
  with_gradient:1:Bfloat16:5000 with_gradient:1:Float16:4097 with_gradient:1:Float32:5120
  with_gradient:2:Bfloat16:9001 with_gradient:2:Float16:10240 with_gradient:2:Float32:4512
  with_gradient:3:Bfloat16:26624 with_gradient:3:Float16:25152 with_gradient:3:Float32:13313
  with_gradient:4:Bfloat16:34817 with_gradient:4:Float16:37000 with_gradient:4:Float32:20480
  with_gradient:5:Bfloat16:49153 with_gradient:5:Float16:50000 with_gradient:5:Float32:24577
  # Rings. Numbers 2, 4, 7 and 9 are for rows with temperatures of their own, 3 and 4 for rows at any address.
  forward:1:Bfloat16:9001 forward:1:Float32:5000
  forward:2:Bfloat16:20000 forward:2:Float16:5001
  forward:3:Bfloat16:9001 forward:3:Float16:12345 forward:3:Float32:4099
  forward:4:Bfloat16:10007 forward:4:Float32:5003
  forward:5:Float16:17000 forward:5:Bfloat16:4096
  forward:6:Float32:10240 forward:6:Float16:5000
  forward:7:Bfloat16:70000 forward:7:Float32:9000
  forward:8:Bfloat16:100000
  forward:9:Float16:20001
  # Few rows, by clusters of 16, 8, 6, 4, 8, 3, 2, 2, 1 and 1.
  forward:10:Bfloat16:40001 forward:10:Float32:70000
  forward:11:Bfloat16:135000 forward:11:Float16:20000
  forward:12:Bfloat16:30000 forward:12:Float32:66001
  forward:13:Bfloat16:70001 forward:13:Float32:8200
  forward:14:Bfloat16:20000 forward:14:Float16:70003
  forward:15:Bfloat16:100001 forward:15:Float32:9000
  forward:16:Bfloat16:32768 forward:16:Float16:4096
  forward:17:Bfloat16:25000 forward:17:Float32:4104
  forward:18:Bfloat16:20001 forward:18:Float16:5000
  forward:19:Bfloat16:9000 forward:19:Float32:4999
)
add_executable(write_hopper_kernel write_hopper_kernel.cpp)
target_link_libraries(write_hopper_kernel PRIVATE bilogp_build_options bilogp_cuda_backend fmt::fmt)
set(instances "")
foreach(kernel IN LISTS hopper_kernels)
  string(REPLACE ":" ";" arguments "${kernel}")
  string(REPLACE ":" "_" name "${kernel}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/hopper_${name}.cpp")
  add_custom_command(OUTPUT "${source}" DEPENDS write_hopper_kernel
    COMMAND write_hopper_kernel "${source}" ${arguments} COMMENT "Writing hopper_${name}.cpp" VERBATIM)
  list(APPEND instances "${source}")
endforeach()
add_hopper_objects(gpu_model_hopper_kernels ${instances})
