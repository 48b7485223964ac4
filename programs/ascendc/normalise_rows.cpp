// y = x / (1e-6 + the greatest |x| of the row) as half: vector registers of the A5, two passes over each row.
// castsim run programs/ascendc/normalise_rows.cpp --target a5 --in x=random:1 --arg size.rows=6 --arg size.cols=208
#include "kernel_operator.h"

using namespace AscendC;

struct Size {
  uint32_t rows;
  uint32_t cols;
};

constexpr uint32_t LANES = 64;
constexpr static Reg::CastTrait TO_HALF = {Reg::RegLayout::ZERO, Reg::SatMode::SAT, Reg::MaskMergeMode::ZEROING,
                                           RoundMode::CAST_RINT};

__simd_vf__ inline void NormaliseRows(__ubuf__ float *x, __ubuf__ half *y, uint16_t rows, uint32_t cols) {
  Reg::RegTensor<float> value, magnitude, top, scaled;
  Reg::RegTensor<half> result;
  const uint16_t trips = (cols + LANES - 1) / LANES;
  const Reg::MaskReg all = Reg::CreateMask<float>();
  for (uint16_t row = 0; row < rows; ++row) {
    uint32_t left = cols;
    Reg::Duplicate(top, 0.0f);
    for (uint16_t i = 0; i < trips; ++i) {
      Reg::MaskReg mask = Reg::UpdateMask<float>(left);
      Reg::LoadAlign(value, x + row * cols + i * LANES);
      Reg::Abs(magnitude, value, mask);
      Reg::Max(top, top, magnitude, all);
    }
    Reg::ReduceMax(top, top, all);
    Reg::Adds(top, top, 1e-6f, all);
    Reg::Duplicate(top, top, all);
    left = cols;
    for (uint16_t i = 0; i < trips; ++i) {
      Reg::MaskReg mask = Reg::UpdateMask<float>(left);
      Reg::LoadAlign(value, x + row * cols + i * LANES);
      Reg::Div(scaled, value, top, mask);
      Reg::Cast<half, float, TO_HALF>(result, scaled, mask);
      Reg::StoreAlign<half, Reg::StoreDist::DIST_PACK_B32>(y + row * cols + i * LANES, result, mask);
    }
  }
}

extern "C" __global__ __aicore__ void normalise_rows(GM_ADDR x, GM_ADDR y, Size size) {
  const uint32_t total = size.rows * size.cols;
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, total * sizeof(float) + 256);
  pipe.InitBuffer(out, 1, total * sizeof(half));
  GlobalTensor<float> source;
  GlobalTensor<half> result;
  source.SetGlobalBuffer((__gm__ float *)x);
  result.SetGlobalBuffer((__gm__ half *)y);
  LocalTensor<float> given = in.AllocTensor<float>();
  DataCopy(given, source, total);
  in.EnQue(given);
  given = in.DeQue<float>();
  LocalTensor<half> made = out.AllocTensor<half>();
  VF_CALL<NormaliseRows>((__ubuf__ float *)given.GetPhyAddr(), (__ubuf__ half *)made.GetPhyAddr(), size.rows, size.cols);
  in.FreeTensor(given);
  out.EnQue(made);
  made = out.DeQue<half>();
  DataCopy(result, made, total);
  out.FreeTensor(made);
}
