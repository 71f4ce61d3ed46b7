"""A pure read of the same launch shape as the library's plan for few rows: grid, blocks, clusters, and each thread the
same bytes. What is left of a launch's time is what the answer costs."""

import ctypes as c

import torch

# Rows up to which runtime/backends/cuda/hopper_plans.cpp takes a shape at 128256 columns in bfloat16 on 132
# multiprocessors: cluster, loading warps, blocks of a multiprocessor, tiles of a warp that are on their way at once.
SHAPES = ((7, (16, 8, 2, 1)), (15, (8, 16, 1, 1)), (16, (6, 21, 1, 1)), (30, (4, 16, 1, 2)), (38, (3, 24, 1, 2)),
          (66, (2, 16, 1, 4)), (132, (2, 12, 2, 1)), (264, (1, 16, 2, 1)), (1 << 31, (1, 8, 4, 1)))

SOURCE = r"""
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS)
read_rows(const char* x, unsigned* out, long long row_bytes) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER;
  if (warp >= WARPS) return;
  const long long tiles = (row_bytes + 2047) / 2048, end = (rank + 1) * tiles / CLUSTER;
  const char* row = x + blockIdx.x / CLUSTER * row_bytes;
  unsigned total = 0;
#pragma unroll AT_ONCE
  for (long long tile = rank * tiles / CLUSTER + warp; tile < end; tile += WARPS) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long at = tile * 2048 + j * 512 + lane * 16;
      v[j] = at < row_bytes ? __ldcs((const uint4*)(row + at)) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) total ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  if (total == 0x12345678) *out = total;
}
"""


class _Triple(c.Structure):
    _fields_ = [("x", c.c_uint), ("y", c.c_uint), ("z", c.c_uint)]


class _Value(c.Union):
    _fields_ = [("bytes", c.c_char * 64), ("cluster", _Triple)]


class _Attribute(c.Structure):
    _fields_ = [("id", c.c_int), ("padding", c.c_char * 4), ("value", _Value)]


class _Config(c.Structure):
    _fields_ = [("grid", _Triple), ("block", _Triple), ("shared_bytes", c.c_uint), ("stream", c.c_void_p),
                ("attributes", c.POINTER(_Attribute)), ("attribute_count", c.c_uint)]


def _check(status, what):
    if status != 0:
        raise RuntimeError(f"{what} fails with {status}")


def _nvrtc():
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return c.CDLL(name)
        except OSError:
            pass
    raise RuntimeError("there is no NVRTC for the read of the launch shape")


def _cubin(cluster, warps, blocks, at_once):
    owns = 2 if (warps + 2) * blocks <= 32 else 0
    threads = (warps + owns) * 32
    capability = "".join(str(n) for n in torch.cuda.get_device_capability())
    options = [f"--gpu-architecture=sm_{capability}"]
    options += [f"-D{name}={value}" for name, value in (("CLUSTER", cluster), ("WARPS", warps), ("BLOCKS", blocks),
                                                        ("AT_ONCE", at_once), ("THREADS", threads))]
    nvrtc, program, size = _nvrtc(), c.c_void_p(), c.c_size_t()
    _check(nvrtc.nvrtcCreateProgram(c.byref(program), SOURCE.encode(), b"read.cu", 0, None, None), "NVRTC")
    _check(nvrtc.nvrtcCompileProgram(program, len(options), (c.c_char_p * len(options))(*[o.encode() for o in options])),
           "compiling the read")
    _check(nvrtc.nvrtcGetCUBINSize(program, c.byref(size)), "NVRTC")
    image = c.create_string_buffer(size.value)
    _check(nvrtc.nvrtcGetCUBIN(program, image), "NVRTC")
    return image, threads


def shape_read(x):
    """A function that queues a read of x, whose rows lie one behind the other."""
    cluster, warps, blocks, at_once = next(shape for rows, shape in SHAPES if len(x) <= rows)
    image, threads = _cubin(cluster, warps, blocks, at_once)
    driver, module, function = c.CDLL("libcuda.so.1"), c.c_void_p(), c.c_void_p()
    _check(driver.cuModuleLoadData(c.byref(module), image), "loading the read")
    _check(driver.cuModuleGetFunction(c.byref(function), module, b"read_rows"), "finding the read")
    _check(driver.cuFuncSetAttribute(function, 14, 1), "allowing large clusters")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    attribute = _Attribute(4)
    attribute.value.cluster = _Triple(cluster, 1, 1)
    config = _Config(_Triple(len(x) * cluster, 1, 1), _Triple(threads, 1, 1), 0, torch.cuda.current_stream().cuda_stream,
                     c.pointer(attribute), 1 if cluster > 1 else 0)
    values = (c.c_void_p(x.data_ptr()), c.c_void_p(out.data_ptr()), c.c_int64(x.shape[1] * x.element_size()))
    arguments = (c.c_void_p * 3)(*[c.cast(c.pointer(v), c.c_void_p) for v in values])

    def call(_keep=(x, out, attribute, values, module)):
        _check(driver.cuLaunchKernelEx(c.byref(config), function, arguments, None), "launching the read")

    return call
