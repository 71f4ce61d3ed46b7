"""The library through its C interface, for tensors of torch on a GPU."""

import ctypes as c

import torch

DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.int32: 3, torch.int64: 4}


class Tensor(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("dtype", c.c_int32), ("rank", c.c_int32), ("device_type", c.c_int32),
                ("device_index", c.c_int32), ("reserved", c.c_int32), ("data", c.c_void_p), ("shape", c.c_int64 * 8),
                ("strides", c.c_int64 * 8)]

    @classmethod
    def of(cls, t):
        view = cls(c.sizeof(cls), DTYPES[t.dtype], t.dim(), 2, t.device.index or 0, 0, t.data_ptr())
        view.shape[:t.dim()] = t.shape
        view.strides[:t.dim()] = t.stride()
        return view


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("validate", c.c_int32), ("ignore_index", c.c_int64),
                ("temperature", c.c_double), ("vocab_size", c.c_int64), ("temperature_per_row", c.POINTER(Tensor)),
                ("error_buffer", c.c_void_p), ("threads", c.c_int32), ("numerics", c.c_int32), ("plan", c.c_int32),
                ("reserved", c.c_int32)]


class Library:
    """Each method prepares a call and returns a function that queues it, so that only the call itself is timed."""

    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.bilogp_last_error.restype = c.c_char_p
        self.runtime = c.c_void_p()
        self._check(self.lib.bilogp_runtime_get(b"cuda", c.byref(self.runtime)))

    def _check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.bilogp_last_error().decode())

    def _options(self, temperature, native, plan, temperatures, keep):
        options = Options(c.sizeof(Options))
        self.lib.bilogp_options_init(c.byref(options))
        options.validate = 2
        options.temperature, options.numerics, options.plan = temperature, int(native), plan
        if temperatures is not None:
            keep.append(Tensor.of(temperatures))
            options.temperature_per_row = c.pointer(keep[-1])
        return options

    def _call(self, function, tensors, tail, temperature, native, plan, temperatures=None):
        keep = [Tensor.of(t) for t in tensors]
        views = [c.byref(view) for view in keep]
        options = self._options(temperature, native, plan, temperatures, keep)
        stream = c.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call(_keep=(keep, tensors, options, temperatures)):
            self._check(function(self.runtime, *views, *tail, c.byref(options), stream))

        return call

    def logp(self, logits, ids, out, *, temperature=1.0, native=False, plan=-1, temperatures=None):
        tensors = [logits, ids, out.logp, out.lse, out.row_state]
        return self._call(self.lib.bilogp_logp, tensors, (), temperature, native, plan, temperatures)

    def backward(self, logits, ids, out, g, grad, *, temperature=1.0, native=False, plan=-1):
        tail = (c.c_int(int(grad.data_ptr() == logits.data_ptr())),)
        return self._call(self.lib.bilogp_logp_backward, [logits, ids, out.row_state, g, grad], tail, temperature, native,
                          plan)

    def with_gradient(self, logits, ids, out, g, grad, *, temperature=1.0, native=False, plan=-1):
        tail = (c.c_int(int(grad.data_ptr() == logits.data_ptr())),)
        return self._call(self.lib.bilogp_logp_with_gradient,
                          [logits, ids, g, out.logp, out.lse, out.row_state, grad], tail, temperature, native, plan)


class Outputs:
    def __init__(self, rows):
        self.logp = torch.empty(rows, device="cuda")
        self.lse = torch.empty(rows, device="cuda")
        self.row_state = torch.empty(rows, 2, dtype=torch.int32, device="cuda")
