// Quantisation by a scale and an offset of each column, to i8 or to packed i4, as attention kernels of libraries do it.
#include "kernel_operator.h"
using namespace AscendC;
#define CHANNEL_BUFFERS 2

struct QuantChannelsTilingData {
    uint32_t rows{0};
    uint32_t cols{0};
    uint32_t toInt4{0};
};

template <typename inType>
class QuantChannels {
public:
    __aicore__ inline QuantChannels() {}
    __aicore__ inline void Init(__gm__ uint8_t *x, __gm__ uint8_t *scale, __gm__ uint8_t *offset, __gm__ uint8_t *y, QuantChannelsTilingData &data)
    {
        data_ = data;
        gmX_.SetGlobalBuffer((__gm__ inType *)x);
        gmScale_.SetGlobalBuffer((__gm__ float *)scale);
        gmOffset_.SetGlobalBuffer((__gm__ float *)offset);
        gmY_.SetGlobalBuffer((__gm__ int8_t *)y);
        pipe_.InitBuffer(xQueue_, CHANNEL_BUFFERS, data_.cols * sizeof(inType));
        pipe_.InitBuffer(yQueue_, CHANNEL_BUFFERS, data_.cols * sizeof(int8_t));
        pipe_.InitBuffer(scaleQueue_, 1, data_.cols * sizeof(float));
        pipe_.InitBuffer(offsetQueue_, 1, data_.cols * sizeof(float));
        pipe_.InitBuffer(workBuf_, data_.cols * sizeof(float));
        pipe_.InitBuffer(halfBuf_, data_.cols * sizeof(half));
    }
    __aicore__ inline void Process()
    {
        LocalTensor<float> scale = Column(scaleQueue_, gmScale_), offset = Column(offsetQueue_, gmOffset_);
        for (uint32_t row = 0; row < data_.rows; row++) {
            uint64_t at = static_cast<uint64_t>(row) * data_.cols;
            LocalTensor<inType> x = xQueue_.AllocTensor<inType>();
            DataCopy(x, gmX_[at], data_.cols);
            xQueue_.EnQue(x);
            Quantise(scale, offset);
            LocalTensor<int8_t> y = yQueue_.DeQue<int8_t>();
            if (data_.toInt4 == 1) {
                DataCopyExtParams half4{1, static_cast<uint32_t>(data_.cols >> 1), 0, 0, 0};
                DataCopyPad(gmY_[at >> 1], y, half4);
            } else {
                DataCopy(gmY_[at], y, data_.cols);
            }
            yQueue_.FreeTensor(y);
        }
        scaleQueue_.FreeTensor(scale);
        offsetQueue_.FreeTensor(offset);
    }

private:
    __aicore__ inline LocalTensor<float> Column(TQue<QuePosition::VECIN, 1> &queue, GlobalTensor<float> &gm)
    {
        LocalTensor<float> local = queue.AllocTensor<float>();
        DataCopy(local, gm, data_.cols);
        queue.EnQue(local);
        return queue.DeQue<float>();
    }
    __aicore__ inline void Quantise(LocalTensor<float> &scale, LocalTensor<float> &offset)
    {
        LocalTensor<inType> x = xQueue_.DeQue<inType>();
        LocalTensor<int8_t> y = yQueue_.AllocTensor<int8_t>();
        LocalTensor<float> work = workBuf_.Get<float>();
        LocalTensor<half> narrow = halfBuf_.Get<half>();
        Cast(work, x, RoundMode::CAST_NONE, data_.cols);
        pipe_barrier(PIPE_V);
        xQueue_.FreeTensor(x);
        Mul(work, work, scale, data_.cols);
        pipe_barrier(PIPE_V);
        Add(work, work, offset, data_.cols);
        pipe_barrier(PIPE_V);
        Cast(work.ReinterpretCast<int32_t>(), work, RoundMode::CAST_RINT, data_.cols);
        pipe_barrier(PIPE_V);
        SetDeqScale(static_cast<half>(1.0));
        Cast(narrow, work.ReinterpretCast<int32_t>(), RoundMode::CAST_ROUND, data_.cols);
        pipe_barrier(PIPE_V);
        if (data_.toInt4 == 1) {
            LocalTensor<int4b_t> packed = y.ReinterpretCast<int4b_t>();
            Cast(packed, narrow, RoundMode::CAST_RINT, data_.cols);
        } else {
            Maxs(narrow, narrow, (half)-128, data_.cols);
            pipe_barrier(PIPE_V);
            Mins(narrow, narrow, (half)127, data_.cols);
            pipe_barrier(PIPE_V);
            Cast(y, narrow, RoundMode::CAST_TRUNC, data_.cols);
        }
        yQueue_.EnQue(y);
    }
    QuantChannelsTilingData data_;
    TPipe pipe_;
    TQue<QuePosition::VECIN, CHANNEL_BUFFERS> xQueue_;
    TQue<QuePosition::VECIN, 1> scaleQueue_, offsetQueue_;
    TQue<QuePosition::VECOUT, CHANNEL_BUFFERS> yQueue_;
    TBuf<TPosition::VECCALC> workBuf_, halfBuf_;
    GlobalTensor<inType> gmX_;
    GlobalTensor<float> gmScale_, gmOffset_;
    GlobalTensor<int8_t> gmY_;
};

inline __aicore__ void InitChannelTiling(const __gm__ uint8_t *tiling, QuantChannelsTilingData *data)
{
    const __gm__ uint32_t *src = (const __gm__ uint32_t *)tiling;
    uint32_t *dst = (uint32_t *)data;
    for (auto i = 0; i < sizeof(QuantChannelsTilingData) / 4; i++) *(dst + i) = *(src + i);
}

extern "C" __global__ __aicore__ void quant_channels(GM_ADDR x, GM_ADDR scale, GM_ADDR offset, GM_ADDR y, GM_ADDR tiling)
{
    QuantChannelsTilingData data;
    InitChannelTiling(tiling, &data);
    QuantChannels<bfloat16_t> kernel;
    kernel.Init(x, scale, offset, y, data);
    kernel.Process();
}
