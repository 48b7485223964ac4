// Each row of f32 divided by its largest magnitude, which the scalar unit reads; rows of zeros stay. No barrier of V
// stands between dependent calls: the kernel's compiler adds them.
// castsim run programs/ascendc/scale_rows.cpp --in x=random:1 --arg tiling.rows=4 --arg tiling.cols=104
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR y, GM_ADDR top, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(given, tiling);
  const uint32_t cols = given.cols, bytes = cols * sizeof(float);
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> rows;
  TBuf<> magnitudes, largest;
  pipe.InitBuffer(rows, 2, bytes);
  pipe.InitBuffer(magnitudes, bytes);
  pipe.InitBuffer(largest, 64);
  GlobalTensor<float> source, result, tops;
  source.SetGlobalBuffer((__gm__ float *)x);
  result.SetGlobalBuffer((__gm__ float *)y);
  tops.SetGlobalBuffer((__gm__ float *)top);
  for (uint32_t row = 0; row < given.rows; ++row) {
    LocalTensor<float> values = rows.AllocTensor<float>();
    DataCopy(values, source[row * cols], cols);
    rows.EnQue<TPosition::GM, TPosition::VECIN>(values);
    values = rows.DeQue<TPosition::GM, TPosition::VECIN, float>();
    LocalTensor<float> sizes = magnitudes.Get<float>(), most = largest.Get<float>();
    Abs(sizes, values, cols);
    ReduceMax(most, sizes, sizes, cols);
    const float peak = most.GetValue(0);
    if (peak > 0) Muls(values, values, 1 / peak, cols);
    tops.SetValue(row, peak);
    rows.EnQue<TPosition::VECOUT, TPosition::GM>(values);
    values = rows.DeQue<TPosition::VECOUT, TPosition::GM, float>();
    DataCopy(result[row * cols], values, cols);
    rows.FreeTensor(values);
  }
}
