// y = half(2 x), z = x + x: a vector function of the A5 between tile operations.
// castsim run programs/pto_cpp/vector_function.cpp --target a5 --in in=random:1
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE void Twice(__ubuf__ float *x, __ubuf__ half *y, uint32_t count) {
  const uint16_t trips = (count + 63) / 64;
  __VEC_SCOPE__ {
    RegTensor<float> a, b;
    RegTensor<half> c;
    for (uint16_t i = 0; i < trips; ++i) {
      MaskReg mask = CreatePredicate<float>(count);
      vlds(a, x, i * 64, NORM);
      vmuls(b, a, 2.0f, mask, MODE_ZEROING);
      vcvt(c, b, mask, ROUND_R, RS_ENABLE, PART_EVEN);
      vsts(c, y, i * 64, PK_B32, mask);
    }
  }
}

extern "C" __global__ AICORE void vector_function(__gm__ float *in, __gm__ half *out, __gm__ float *more) {
  using S = Shape<1, 1, 1, 1, 512>;
  using P = Stride<512, 512, 512, 512, 1>;
  Tile<TileType::Vec, float, 1, 512> x, z;
  Tile<TileType::Vec, half, 1, 512> y;
  TASSIGN(x, 0);
  TASSIGN(y, 8192);
  TASSIGN(z, 16384);
  GlobalTensor<float, S, P> source(in), third(more);
  GlobalTensor<half, S, P> result(out);
  TLOAD(x, source);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  Twice(x.data(), y.data(), 512);
  TADD(z, x, x);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(result, y);
  TSTORE(third, z);
}
