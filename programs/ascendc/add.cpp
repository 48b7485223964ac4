// z = x + y in f32, a tile of each in the buffer while the next ones come: two buffers a queue.
// castsim run programs/ascendc/add.cpp --in x=random:1 --in y=random:2 --arg total=4096 --arg tile=512
#include "kernel_operator.h"

using namespace AscendC;

class Add32 {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t total, uint32_t tile) {
    total_ = total / GetBlockNum();
    tile_ = tile;
    const uint32_t first = total_ * GetBlockIdx();
    x_.SetGlobalBuffer((__gm__ float *)x + first, total_);
    y_.SetGlobalBuffer((__gm__ float *)y + first, total_);
    z_.SetGlobalBuffer((__gm__ float *)z + first, total_);
    pipe_.InitBuffer(left_, 2, tile * sizeof(float));
    pipe_.InitBuffer(right_, 2, tile * sizeof(float));
    pipe_.InitBuffer(sum_, 2, tile * sizeof(float));
  }
  __aicore__ inline void Process() {
    for (uint32_t at = 0; at < total_; at += tile_) {
      Load(at);
      Compute();
      Store(at);
    }
  }

 private:
  __aicore__ inline void Load(uint32_t at) {
    LocalTensor<float> left = left_.AllocTensor<float>();
    DataCopy(left, x_[at], tile_);
    left_.EnQue(left);
    LocalTensor<float> right = right_.AllocTensor<float>();
    DataCopy(right, y_[at], tile_);
    right_.EnQue(right);
  }
  __aicore__ inline void Compute() {
    LocalTensor<float> left = left_.DeQue<float>(), right = right_.DeQue<float>(), sum = sum_.AllocTensor<float>();
    Add(sum, left, right, tile_);
    sum_.EnQue(sum);
    left_.FreeTensor(left);
    right_.FreeTensor(right);
  }
  __aicore__ inline void Store(uint32_t at) {
    LocalTensor<float> sum = sum_.DeQue<float>();
    DataCopy(z_[at], sum, tile_);
    sum_.FreeTensor(sum);
  }

  TPipe pipe_;
  TQue<TPosition::VECIN, 1> left_, right_;
  TQue<TPosition::VECOUT, 1> sum_;
  GlobalTensor<float> x_, y_, z_;
  uint32_t total_ = 0, tile_ = 0;
};

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t total, uint32_t tile) {
  Add32 kernel;
  kernel.Init(x, y, z, total, tile);
  kernel.Process();
}
