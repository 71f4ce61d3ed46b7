// The CUDA driver, found at run time: the few types and functions of libcuda that bilogp needs, declared here, so that
// it builds where there is no CUDA and runs where there is none.
//
// Thread-safety: everything here may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bilogp::cuda {

// Names and values are the driver's.
enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  unsupported_ptx_version = 222,
  invalid_source = 300,
  invalid_handle = 400,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  context_is_destroyed = 709,
  stream_capture_unsupported = 900,
  stream_capture_implicit = 906,
  invalid_cluster_size = 912,
};

using DeviceOrdinal = int; // CUdevice
using Address = unsigned long long;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;
using Graph = struct GraphHandle*;
using UserObject = struct UserObjectHandle*;
using Event = struct EventHandle*;

constexpr Stream legacy_stream() noexcept {
  return nullptr;
}

// CUdevice_attribute
enum class DeviceAttribute : int {
  multiprocessor_count = 16,
  l2_cache_size = 38,
  max_threads_per_multiprocessor = 39,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  max_shared_memory_per_block_optin = 97,
  cluster_launch = 120,
};

// CUfunction_attribute
enum class FunctionAttribute : int {
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared_bytes = 8,
  non_portable_cluster_size_allowed = 14,
};

// CUpointer_attribute, CUmemorytype
enum class PointerAttribute : int { context = 1, memory_type = 2, is_managed = 8, device_ordinal = 9 };
enum class MemoryType : unsigned { unknown = 0, host = 1, device = 2 };

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

struct LaunchAttribute { // CUlaunchAttribute: a number and 64 bytes of value
  int id;
  int padding;
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
constexpr int attribute_cluster_dimension = 4;

constexpr unsigned stream_non_blocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned event_disable_timing = 2; // CU_EVENT_DISABLE_TIMING
constexpr unsigned user_object_no_destructor_sync = 1;
constexpr unsigned graph_user_object_move = 1;

struct LaunchConfig { // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Every function with the name that libcuda exports and its type: name in this project, name there, arguments.
#define BILOGP_CUDA_FUNCTIONS(F)                                                                                       \
  F(init, "cuInit", (unsigned flags))                                                                                  \
  F(driver_get_version, "cuDriverGetVersion", (int* version))                                                          \
  F(device_get_count, "cuDeviceGetCount", (int* count))                                                                \
  F(device_get, "cuDeviceGet", (DeviceOrdinal * device, int index))                                                    \
  F(device_get_name, "cuDeviceGetName", (char* name, int size, DeviceOrdinal device))                                  \
  F(device_get_attribute, "cuDeviceGetAttribute", (int* value, DeviceAttribute attribute, DeviceOrdinal device))       \
  F(primary_context_retain, "cuDevicePrimaryCtxRetain", (Context * context, DeviceOrdinal device))                     \
  F(primary_context_release, "cuDevicePrimaryCtxRelease_v2", (DeviceOrdinal device))                                   \
  F(primary_context_get_state, "cuDevicePrimaryCtxGetState", (DeviceOrdinal device, unsigned* flags, int* active))     \
  F(context_get_current, "cuCtxGetCurrent", (Context * context))                                                       \
  F(context_push_current, "cuCtxPushCurrent_v2", (Context context))                                                    \
  F(context_pop_current, "cuCtxPopCurrent_v2", (Context * context))                                                    \
  F(module_load_data, "cuModuleLoadDataEx",                                                                            \
    (Module * module, const void* image, unsigned count, int* options, void** values))                                 \
  F(module_unload, "cuModuleUnload", (Module module))                                                                  \
  F(module_get_function, "cuModuleGetFunction", (Function * function, Module module, const char* name))                \
  F(function_set_attribute, "cuFuncSetAttribute", (Function function, FunctionAttribute attribute, int value))         \
  F(function_get_attribute, "cuFuncGetAttribute", (int* value, FunctionAttribute attribute, Function function))        \
  F(occupancy_clusters, "cuOccupancyMaxActiveClusters", (int* count, Function function, const LaunchConfig* config))   \
  F(launch_kernel, "cuLaunchKernelEx",                                                                                 \
    (const LaunchConfig* config, Function function, void** arguments, void** extra))                                   \
  F(memory_allocate, "cuMemAlloc_v2", (Address * address, std::size_t bytes))                                          \
  F(memory_free, "cuMemFree_v2", (Address address))                                                                    \
  F(copy_to_host, "cuMemcpyDtoHAsync_v2", (void* to, Address from, std::size_t bytes, Stream stream))                  \
  F(copy_to_device, "cuMemcpyHtoDAsync_v2", (Address to, const void* from, std::size_t bytes, Stream stream))          \
  F(fill_words, "cuMemsetD32Async", (Address address, unsigned value, std::size_t count, Stream stream))               \
  F(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                                                \
  F(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                                             \
  F(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                                        \
  F(stream_is_capturing, "cuStreamIsCapturing", (Stream stream, CaptureStatus * status))                               \
  F(stream_get_capture, "cuStreamGetCaptureInfo_v2",                                                                   \
    (Stream stream, CaptureStatus * status, std::uint64_t* id, Graph* graph, const void** dependencies,                \
     std::size_t* count))                                                                                              \
  F(stream_get_context, "cuStreamGetCtx", (Stream stream, Context * context))                                          \
  F(stream_get_id, "cuStreamGetId", (Stream stream, std::uint64_t* id))                                                \
  F(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (CaptureMode * mode))                                  \
  F(pointer_get_attribute, "cuPointerGetAttribute", (void* value, PointerAttribute attribute, Address address))        \
  F(event_create, "cuEventCreate", (Event * event, unsigned flags))                                                    \
  F(event_record, "cuEventRecord", (Event event, Stream stream))                                                       \
  F(event_query, "cuEventQuery", (Event event))                                                                        \
  F(event_destroy, "cuEventDestroy_v2", (Event event))                                                                 \
  F(user_object_create, "cuUserObjectCreate",                                                                          \
    (UserObject * object, void* pointer, void (*destroy)(void*), unsigned count, unsigned flags))                      \
  F(user_object_release, "cuUserObjectRelease", (UserObject object, unsigned count))                                   \
  F(graph_retain_user_object, "cuGraphRetainUserObject",                                                               \
    (Graph graph, UserObject object, unsigned count, unsigned flags))                                                  \
  F(get_error_name, "cuGetErrorName", (Result result, const char** name))                                              \
  F(get_error_string, "cuGetErrorString", (Result result, const char** text))

struct Driver {
// The arguments bring their own parentheses.
#define BILOGP_CUDA_MEMBER(name, symbol, arguments)                                                                    \
  Result(*name) arguments = nullptr; // NOLINT(bugprone-macro-parentheses)
  BILOGP_CUDA_FUNCTIONS(BILOGP_CUDA_MEMBER)
#undef BILOGP_CUDA_MEMBER
  int version = 0;  // 13000 is 13.0
  std::string path; // of libcuda
};

// Loads and initialises the driver at the first call. Throws Error(unsupported): libcuda is missing, too old (before
// 12.0) or finds no device, with what to install or to set. A failed attempt is made again by the next call.
const Driver& driver();

// The driver if `driver()` would answer, else null with the reason in `why`; never throws.
const Driver* try_driver(std::string* why = nullptr) noexcept;

// "13.0" from 13000.
std::string version_text(int version);

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string describe(const Driver& driver, Result result);

// Errors after which the driver refuses every further call on that context.
bool is_sticky(Result result) noexcept;

// Throws for anything but success: Error(out_of_memory) or Error(device), saying what was tried. After an error that
// stays with its device until the process ends, the sentence says so.
void check(const Driver& driver, Result result, const char* what);

} // namespace bilogp::cuda
