// Logits whose bit is 0 become the lowest number; an entry for each element type.
#include "kernel_operator.h"
using namespace AscendC;
namespace {
constexpr int32_t TILE = 512;

template <typename T> struct Lowest;
template <> struct Lowest<half> { static constexpr float value = -65504.0f; };
template <> struct Lowest<float> { static constexpr float value = -3.4028234663852886e+38f; };

template <typename T>
class TokenMask {
public:
    __aicore__ inline TokenMask() {}
    __aicore__ inline void Init(GM_ADDR logits, GM_ADDR mask, GM_ADDR out, uint32_t rows, uint32_t vocab)
    {
        rows_ = rows;
        vocab_ = vocab;
        logits_.SetGlobalBuffer((__gm__ T *)logits);
        out_.SetGlobalBuffer((__gm__ T *)out);
        mask_.SetGlobalBuffer((__gm__ uint8_t *)mask);
        pipe_.InitBuffer(logitsQueue_, 2, TILE * sizeof(T));
        pipe_.InitBuffer(maskQueue_, 2, TILE / 8);
        pipe_.InitBuffer(outQueue_, 2, TILE * sizeof(T));
    }
    __aicore__ inline void Process()
    {
        for (uint32_t row = GetBlockIdx(); row < rows_; row += GetBlockNum())
            for (uint32_t at = 0; at < vocab_; at += TILE) Tile(row, at);
    }

private:
    __aicore__ inline void Tile(uint32_t row, uint32_t at)
    {
        LocalTensor<T> logits = logitsQueue_.AllocTensor<T>();
        LocalTensor<uint8_t> mask = maskQueue_.AllocTensor<uint8_t>();
        DataCopy(logits, logits_[row * vocab_ + at], TILE);
        DataCopy(mask, mask_[(row * vocab_ + at) / 8], TILE / 8);
        logitsQueue_.EnQue(logits);
        maskQueue_.EnQue(mask);
        logits = logitsQueue_.DeQue<T>();
        mask = maskQueue_.DeQue<uint8_t>();
        LocalTensor<T> out = outQueue_.AllocTensor<T>();
        Select(out, mask, logits, static_cast<T>(Lowest<T>::value), SELMODE::VSEL_TENSOR_SCALAR_MODE, TILE);
        // the first bit of a tile also by hand
        if ((mask.GetValue(0) & 1) == 0) {
            out.SetValue(0, T(Lowest<T>::value));
        } else {
            out.SetValue(0, logits.GetValue(0));
        }
        outQueue_.EnQue(out);
        logitsQueue_.FreeTensor(logits);
        maskQueue_.FreeTensor(mask);
        out = outQueue_.DeQue<T>();
        DataCopy(out_[row * vocab_ + at], out, TILE);
        outQueue_.FreeTensor(out);
    }
    TPipe pipe_;
    TQue<QuePosition::VECIN, 2> logitsQueue_, maskQueue_;
    TQue<QuePosition::VECOUT, 2> outQueue_;
    GlobalTensor<T> logits_, out_;
    GlobalTensor<uint8_t> mask_;
    uint32_t rows_, vocab_;
};
} // namespace

extern "C" __global__ __aicore__ void token_mask_fp16(GM_ADDR logits, GM_ADDR mask, GM_ADDR out, uint32_t rows, uint32_t vocab)
{
    TokenMask<half> op;
    op.Init(logits, mask, out, rows, vocab);
    op.Process();
}
extern "C" __global__ __aicore__ void token_mask_fp32(GM_ADDR logits, GM_ADDR mask, GM_ADDR out, uint32_t rows, uint32_t vocab)
{
    TokenMask<float> op;
    op.Init(logits, mask, out, rows, vocab);
    op.Process();
}
