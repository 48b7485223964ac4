// y = min(max(x + z, low), high) of half, with the device compiler's own instructions in a __VEC_SCOPE__ block.
// castsim run programs/ascendc/clamp_sum.cpp --target a5 --in x=random:1 --in z=random:2 --arg n=1000 --arg low=-1 --arg high=1
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void clamp_sum(GM_ADDR x, GM_ADDR z, GM_ADDR y, uint32_t n, float low, float high) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 3 * 16384);
  LocalTensor<half> tensor = buffer.Get<half>();
  __ubuf__ half *first = (__ubuf__ half *)tensor.GetPhyAddr();
  __ubuf__ half *second = first + 8192, *sum = second + 8192;
  GlobalTensor<half> one, other, result;
  one.SetGlobalBuffer((__gm__ half *)x);
  other.SetGlobalBuffer((__gm__ half *)z);
  result.SetGlobalBuffer((__gm__ half *)y);
  DataCopyExtParams bytes{1, uint32_t(n * sizeof(half)), 0, 0, 0};
  DataCopyPadExtParams<half> padding{true, 0, 0, half(0)};
  DataCopyPad(tensor, one, bytes, padding);
  DataCopyPad(tensor[8192], other, bytes, padding);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  uint32_t left = n;
  uint16_t trips = (n + 127) / 128;
  __VEC_SCOPE__ {
    vector_f16 a, b, c;
    for (uint16_t i = 0; i < trips; ++i) {
      vector_bool mask = plt_b16(left, POST_UPDATE);
      vlds(a, first, 128, NORM, POST_UPDATE);
      vlds(b, second, i * 128, NORM);
      vadd(c, a, b, mask, MODE_ZEROING);
      vmaxs(c, c, half(low), mask, MODE_ZEROING);
      vmins(c, c, half(high), mask, MODE_ZEROING);
      vsts(c, sum, i * 128, NORM_B16, mask);
    }
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopyPad(result, tensor[16384], bytes);
}
