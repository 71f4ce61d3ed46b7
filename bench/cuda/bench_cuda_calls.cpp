// What a call on a GPU costs the host: the whole call, and the driver's launch of the same kernel by itself.
//
// Calls are queued in batches that the stream's queue holds, and timed until the last one is queued; the device is
// waited for between batches. Medians of many batches.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "bilogp/bilogp.hpp"
#include "runtime/backends/cuda/contexts.hpp"
#include "runtime/backends/cuda/devices.hpp"
#include "runtime/backends/cuda/kernels.hpp"
#include "runtime/backends/cuda/module.hpp"
#include "runtime/kernel_arguments.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::DType;
using bilogp::TensorView;

constexpr int calls_per_batch = 200, batches = 51;

class DeviceBytes {
public:
  explicit DeviceBytes(std::size_t bytes) {
    const cuda::Driver& driver = cuda::driver();
    cuda::check(driver, driver.memory_allocate(&address_, bytes), "allocating");
    cuda::check(driver, driver.fill_words(address_, 0, bytes / 4, nullptr), "clearing");
  }
  ~DeviceBytes() { cuda::driver().memory_free(address_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  [[nodiscard]] void* data() const { return reinterpret_cast<void*>(address_); }

private:
  cuda::Address address_ = 0;
};

template<class Call> double microseconds(const Call& call) {
  const cuda::Driver& driver = cuda::driver();
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    cuda::check(driver, driver.stream_synchronize(nullptr), "waiting");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_per_batch; ++i) call();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
                    calls_per_batch);
  }
  cuda::check(driver, driver.stream_synchronize(nullptr), "waiting");
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// The plain kernel with the arguments of a small call, straight to the driver.
double bare_launch(cuda::Device& device, const bilogp::LogpArgs& args) {
  const bilogp::Specialization spec{bilogp::Operator::logp_forward, DType::float32, DType::int64};
  const cuda::CompileRequest request = cuda::compile_request(spec, device.target());
  cuda::Function function = cuda::load_function(device, cuda::compile(request).image, request.entry);
  bilogp::kernel::LogpForwardArguments arguments{};
  arguments.options.inner_rows = 1;
  arguments.options.vocab_size = args.logits.shape[1];
  arguments.options.ignore_index = -100;
  arguments.options.temperature = 1;
  arguments.logits = args.logits.data;
  arguments.target_ids = args.target_ids.data;
  arguments.ids_per_row = 1;
  arguments.logp = static_cast<float*>(args.logp.data);
  bilogp::kernel::GpuPlan plan{};
  plan.rows = plan.blocks_per_row = 1;
  void* parameters[] = {&arguments, &plan};
  cuda::LaunchConfig config{1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, 0};
  return microseconds([&] {
    cuda::check(device.driver(), device.driver().launch_kernel(&config, function, parameters, nullptr), "launching");
  });
}

bilogp::LogpArgs call_of(const DeviceBytes& logits, const DeviceBytes& ids, const DeviceBytes& logp, DType dtype,
                         std::int64_t rows, std::int64_t columns) {
  const bilogp::Device device{bilogp::DeviceType::cuda, 0};
  bilogp::LogpArgs args;
  args.logits = TensorView::contiguous(logits.data(), dtype, {rows, columns}, device);
  args.target_ids = TensorView::contiguous(ids.data(), DType::int64, {rows}, device);
  args.logp = TensorView::contiguous(logp.data(), DType::float32, {rows}, device);
  return args;
}

void measure() {
  cuda::Device& device = cuda::Device::get(0);
  const cuda::CurrentContext current(device.driver(), device.context());
  bilogp::Runtime& runtime = bilogp::Runtime::get("cuda");
  struct Shape {
    DType dtype;
    std::int64_t rows, columns;
  };
  constexpr std::int64_t most_rows = 512, most_columns = 128256;
  const DeviceBytes logits(static_cast<std::size_t>(most_rows * most_columns * 2));
  const DeviceBytes ids(most_rows * 8);
  const DeviceBytes logp(most_rows * 4);
  const double bare = bare_launch(device, call_of(logits, ids, logp, DType::float32, 1, 64));
  fmt::print("the driver's launch alone: {:.2f} us\n", bare);
  for (const Shape& shape :
       {Shape{DType::float32, 1, 64}, Shape{DType::bfloat16, 1, most_columns}, Shape{DType::bfloat16, 64, most_columns},
        Shape{DType::bfloat16, most_rows, most_columns}}) {
    const bilogp::LogpArgs args = call_of(logits, ids, logp, shape.dtype, shape.rows, shape.columns);
    runtime.logp(args);
    const double call = microseconds([&] { runtime.logp(args); });
    fmt::print("logp of {} x {} {}: {:.2f} us, {:.2f} us of them ours\n", shape.rows, shape.columns,
               to_string(shape.dtype), call, call - bare);
  }
}

} // namespace

int main() {
  try {
    measure();
    return 0;
  } catch (const bilogp::Error& error) {
    fmt::print(stderr, "bench_cuda_calls: {}\n", error.what());
    return error.kind() == bilogp::ErrorKind::unsupported ? 0 : 1;
  }
}
