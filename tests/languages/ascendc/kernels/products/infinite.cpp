// Which elements are infinite, by integer operations on their bits; 1 and 0 as bytes.
#include "kernel_operator.h"
namespace AscendC {
constexpr int32_t BUFFERS = 2;
constexpr int16_t SIGN_MASK = 0x7FFF;
constexpr int16_t F16_INF = 31744;
constexpr int16_t NEG_ONE = -1;

struct InfiniteTilingData {
    uint64_t totalDataCount = 0;
    uint32_t usableUbSize = 0;
};

template <typename T>
class IsInfinite {
public:
    TPipe pipe;
    __aicore__ inline IsInfinite() = default;
    __aicore__ inline void Process(GM_ADDR x, GM_ADDR y, const InfiniteTilingData *tilingData)
    {
        inGM.SetGlobalBuffer((__gm__ T *)x, tilingData->totalDataCount);
        outGM.SetGlobalBuffer((__gm__ uint8_t *)y, tilingData->totalDataCount);
        uint32_t maxDataCount = tilingData->usableUbSize / 256 * 256;
        pipe.InitBuffer(inQue, BUFFERS, maxDataCount * sizeof(T));
        pipe.InitBuffer(outQue, BUFFERS, maxDataCount * sizeof(T));
        pipe.InitBuffer(tmpBuf, 32);
        LocalTensor<int16_t> signMask = tmpBuf.Get<int16_t>();
        Duplicate(signMask, SIGN_MASK, 16);
        for (uint64_t at = 0; at < tilingData->totalDataCount; at += maxDataCount) {
            uint64_t left = tilingData->totalDataCount - at;
            uint32_t n = left > maxDataCount ? maxDataCount : left, n128 = (n + 127) / 128 * 128;
            CopyIn(at, n);
            Compute(signMask, n128);
            CopyOut(at, n);
        }
    }

private:
    template <typename T1, typename T2>
    __aicore__ inline T1 CeilDiv(T1 a, T2 b) { return b == 0 ? a : (a + b - 1) / b; }
    __aicore__ inline void CopyIn(uint64_t at, uint32_t n)
    {
        LocalTensor<T> local = inQue.AllocTensor<T>();
        Duplicate(local, T(0), CeilDiv(n, 128) * 128);
        SetFlag<HardEvent::V_MTE2>(EVENT_ID3);
        WaitFlag<HardEvent::V_MTE2>(EVENT_ID3);
        DataCopyPad(local, inGM[at], {1, static_cast<uint16_t>(n * sizeof(T)), 0, 0}, DataCopyPadParams{});
        inQue.EnQue(local);
    }
    __aicore__ inline void Compute(LocalTensor<int16_t> &mask, uint32_t n)
    {
        LocalTensor<T> in = inQue.DeQue<T>();
        LocalTensor<int16_t> bits = in.template ReinterpretCast<int16_t>();
        LocalTensor<uint8_t> out = outQue.AllocTensor<uint8_t>();
        BinaryRepeatParams repeatParams = {1, 1, 0, 8, 8, 0};
        And(bits, bits, mask, 128, n / 128, repeatParams);
        PipeBarrier<PIPE_V>();
        Adds(bits, bits, static_cast<int16_t>(-F16_INF), n);
        PipeBarrier<PIPE_V>();
        // 0 where it is infinite; else at least 1 away
        LocalTensor<half> number = in.template ReinterpretCast<half>();
        Maxs(bits, bits, NEG_ONE, n);
        PipeBarrier<PIPE_V>();
        Mins(bits, bits, (int16_t)1, n);
        PipeBarrier<PIPE_V>();
        Mul(bits, bits, bits, n);
        PipeBarrier<PIPE_V>();
        Muls(bits, bits, NEG_ONE, n);
        PipeBarrier<PIPE_V>();
        Adds(bits, bits, (int16_t)1, n);
        PipeBarrier<PIPE_V>();
        Cast(number, bits, RoundMode::CAST_NONE, n);
        PipeBarrier<PIPE_V>();
        Cast(out, number, RoundMode::CAST_CEIL, n);
        outQue.EnQue(out);
        inQue.FreeTensor(in);
    }
    __aicore__ inline void CopyOut(uint64_t at, uint32_t n)
    {
        LocalTensor<uint8_t> out = outQue.DeQue<uint8_t>();
        DataCopyPad(outGM[at], out, DataCopyExtParams{1, n, 0, 0, 0});
        outQue.FreeTensor(out);
    }
    TQue<QuePosition::VECIN, BUFFERS> inQue;
    TQue<QuePosition::VECOUT, BUFFERS> outQue;
    TBuf<QuePosition::VECCALC> tmpBuf;
    GlobalTensor<T> inGM;
    GlobalTensor<uint8_t> outGM;
};
} // namespace AscendC

extern "C" __global__ __aicore__ void infinite(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    if (workspace == nullptr) {
        return;
    }
    GM_ADDR userWS = AscendC::GetUserWorkspace(workspace);
    if (userWS == nullptr) {
        return;
    }
    GET_TILING_DATA_WITH_STRUCT(AscendC::InfiniteTilingData, tilingData, tiling);
    AscendC::IsInfinite<half> op;
    op.Process(x, y, &tilingData);
}
