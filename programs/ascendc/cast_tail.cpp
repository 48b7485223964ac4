// f32 to bf16, nearest even; any length: rows of at most `tile` elements come and go by DataCopyPad.
// castsim run programs/ascendc/cast_tail.cpp --in x=random:1 --arg total=1000 --arg tile=256
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void cast_tail(GM_ADDR x, GM_ADDR y, uint32_t total, uint32_t tile) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> wideQueue;
  TQue<TPosition::VECOUT, 1> slimQueue;
  pipe.InitBuffer(wideQueue, 2, tile * sizeof(float));
  pipe.InitBuffer(slimQueue, 2, tile * sizeof(bfloat16_t));
  GlobalTensor<float> source;
  GlobalTensor<bfloat16_t> result;
  source.SetGlobalBuffer((__gm__ float *)x, total);
  result.SetGlobalBuffer((__gm__ bfloat16_t *)y, total);
  for (uint32_t at = 0; at < total; at += tile) {
    const uint32_t count = total - at < tile ? total - at : tile;
    LocalTensor<float> wide = wideQueue.AllocTensor<float>();
    DataCopyExtParams in{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0};
    DataCopyPad(wide, source[at], in, {true, 0, 0, 0.0f});
    wideQueue.EnQue(wide);
    wide = wideQueue.DeQue<float>();
    LocalTensor<bfloat16_t> slim = slimQueue.AllocTensor<bfloat16_t>();
    Cast(slim, wide, RoundMode::CAST_RINT, count);
    slimQueue.EnQue(slim);
    wideQueue.FreeTensor(wide);
    slim = slimQueue.DeQue<bfloat16_t>();
    DataCopyExtParams out{1, static_cast<uint32_t>(count * sizeof(bfloat16_t)), 0, 0, 0};
    DataCopyPad(result[at], slim, out);
    slimQueue.FreeTensor(slim);
  }
}
