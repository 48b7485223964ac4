// y = x where x > limit, else the limit of the row's group of eight; masks, repeats and strides instead of counts.
// castsim run programs/ascendc/clip_rows.cpp --in x=random:1 --in limit=random:2 --arg rows=16
#include "kernel_operator.h"

using namespace AscendC;

template <typename T>
__aicore__ inline void ClipRows(GM_ADDR x, GM_ADDR limit, GM_ADDR y, uint8_t rows) {
  constexpr uint32_t COLS = 64;
  TPipe pipe;
  TBuf<TPosition::VECCALC> values, limits, spread;
  pipe.InitBuffer(values, rows * COLS * sizeof(T));
  pipe.InitBuffer(limits, rows * sizeof(T));
  pipe.InitBuffer(spread, rows * 32);
  GlobalTensor<T> source, given, result;
  source.SetGlobalBuffer((__gm__ T *)x);
  given.SetGlobalBuffer((__gm__ T *)limit);
  result.SetGlobalBuffer((__gm__ T *)y);
  LocalTensor<T> tile = values.template Get<T>(), low = limits.template Get<T>(), block = spread.template Get<T>();
  DataCopy(tile, source, rows * COLS);
  DataCopy(low, given, DataCopyParams(1, rows * sizeof(T) / 32, 0, 0));
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Brcb(block, low, rows / 8, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Max(tile, tile, block, static_cast<uint64_t>(COLS), rows, BinaryRepeatParams(1, 1, 0, 8, 8, 1));
  PipeBarrier<PIPE_V>();
  uint64_t odd[2] = {0xAAAAAAAAAAAAAAAAull, 0};
  Adds(tile, tile, static_cast<T>(1), odd, rows, {1, 1, 8, 8});
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(result, tile, rows * COLS);
}

extern "C" __global__ __aicore__ void clip_rows(GM_ADDR x, GM_ADDR limit, GM_ADDR y, uint8_t rows) {
  ClipRows<float>(x, limit, y, rows);
}
