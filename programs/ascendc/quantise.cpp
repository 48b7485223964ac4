// f16 to i8 by a factor, rounded to nearest even and clamped; the host's parameters in a tiling structure.
// castsim run programs/ascendc/quantise.cpp --in x=random:1 --arg tiling.total=1024 --arg tiling.scale=20
#include "kernel_operator.h"

using namespace AscendC;

struct QuantiseTiling {
  uint32_t total;
  uint32_t tile = 512;
  float scale;
};

extern "C" __global__ __aicore__ void quantise(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(QuantiseTiling, given, tiling);
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, given.tile * sizeof(half));
  pipe.InitBuffer(out, 2, given.tile * sizeof(int8_t));
  GlobalTensor<half> source;
  GlobalTensor<int8_t> result;
  source.SetGlobalBuffer((__gm__ half *)x, given.total);
  result.SetGlobalBuffer((__gm__ int8_t *)y, given.total);
  for (uint32_t at = 0; at < given.total; at += given.tile) {
    LocalTensor<half> values = in.AllocTensor<half>();
    DataCopy(values, source[at], given.tile);
    in.EnQue(values);
    values = in.DeQue<half>();
    Muls(values, values, static_cast<half>(given.scale), given.tile);
    LocalTensor<int8_t> codes = out.AllocTensor<int8_t>();
    PipeBarrier<PIPE_V>();
    Cast(codes, values, RoundMode::CAST_RINT, given.tile);
    out.EnQue(codes);
    in.FreeTensor(values);
    codes = out.DeQue<int8_t>();
    DataCopy(result[at], codes, given.tile);
    out.FreeTensor(codes);
  }
}
