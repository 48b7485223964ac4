// y[i] = table[index[i]] where that is above `least`, else `other`: gather by byte offsets, compare, select.
// castsim run programs/ascendc/pick.cpp --in table=random:1 --in index=zeros --arg size=256 --arg count=128 \
//     --arg least=0.5 --arg other=-1
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void pick(GM_ADDR table, GM_ADDR index, GM_ADDR y, uint32_t size, uint32_t count,
                                           float least, float other) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> tableIn, indexIn;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<> maskBuffer;
  pipe.InitBuffer(tableIn, 1, size * sizeof(float));
  pipe.InitBuffer(indexIn, 1, count * sizeof(int32_t));
  pipe.InitBuffer(out, 1, count * sizeof(float));
  pipe.InitBuffer(maskBuffer, count / 8);
  GlobalTensor<float> tableGm, result;
  GlobalTensor<int32_t> indexGm;
  tableGm.SetGlobalBuffer((__gm__ float *)table, size);
  indexGm.SetGlobalBuffer((__gm__ int32_t *)index, count);
  result.SetGlobalBuffer((__gm__ float *)y, count);

  LocalTensor<float> values = tableIn.AllocTensor<float>();
  LocalTensor<int32_t> places = indexIn.AllocTensor<int32_t>();
  DataCopy(values, tableGm, size);
  DataCopy(places, indexGm, count);
  tableIn.EnQue(values);
  indexIn.EnQue(places);
  values = tableIn.DeQue<float>();
  places = indexIn.DeQue<int32_t>();
  LocalTensor<float> picked = out.AllocTensor<float>();
  LocalTensor<uint8_t> mask = maskBuffer.Get<uint8_t>();
  Muls(places, places, static_cast<int32_t>(sizeof(float)), count);
  PipeBarrier<PIPE_V>();
  Gather(picked, values, places.ReinterpretCast<uint32_t>(), 0u, count);
  PipeBarrier<PIPE_V>();
  CompareScalar(mask, picked, least, CMPMODE::GT, count);
  PipeBarrier<PIPE_V>();
  Select(picked, mask, picked, other, SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
  out.EnQue(picked);
  tableIn.FreeTensor(values);
  indexIn.FreeTensor(places);
  picked = out.DeQue<float>();
  DataCopy(result, picked, count);
  out.FreeTensor(picked);
}
