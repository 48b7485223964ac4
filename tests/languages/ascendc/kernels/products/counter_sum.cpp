// Adds and sums in counter mode with masks set by hand, on tensors placed by hand: no queues, flags instead.
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void counter_sum(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR sum, int32_t count)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::InitSocState();
    constexpr uint32_t ROOM = 4096;
    constexpr uint32_t xAddr = 0;
    constexpr uint32_t yAddr = xAddr + ROOM * sizeof(float);
    constexpr uint32_t zAddr = yAddr + ROOM * sizeof(float);
    constexpr uint32_t sumAddr = zAddr + ROOM * sizeof(float);
    AscendC::GlobalTensor<float> xGm, yGm, zGm, sumGm;
    xGm.SetGlobalBuffer((__gm__ float *)x);
    yGm.SetGlobalBuffer((__gm__ float *)y);
    zGm.SetGlobalBuffer((__gm__ float *)z);
    sumGm.SetGlobalBuffer((__gm__ float *)sum);
    AscendC::LocalTensor<float> xLocal(AscendC::TPosition::VECCALC, xAddr, ROOM);
    AscendC::LocalTensor<float> yLocal(AscendC::TPosition::VECCALC, yAddr, ROOM);
    AscendC::LocalTensor<float> zLocal = AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, zAddr, ROOM);
    AscendC::LocalTensor<float> part(AscendC::TPosition::VECCALC, sumAddr, 128);
    AscendC::DataCopyExtParams copy{1, uint32_t(count * sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<float> pad{true, 0, 0, 0};
    AscendC::DataCopyPad(xLocal, xGm, copy, pad);
    AscendC::DataCopyPad(yLocal, yGm, copy, pad);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::SetMaskCount();
    AscendC::SetVectorMask<float, AscendC::MaskMode::COUNTER>(0, count);
    AscendC::Add<float, false>(zLocal, xLocal, yLocal, AscendC::MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8});
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Relu<float, false>(xLocal, zLocal, AscendC::MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::WholeReduceSum<float, false>(part, xLocal, AscendC::MASK_PLACEHOLDER, 1, AscendC::DEFAULT_BLK_STRIDE,
                                          AscendC::DEFAULT_BLK_STRIDE, AscendC::DEFAULT_REPEAT_STRIDE);
    AscendC::SetMaskNorm();
    AscendC::ResetMask();
    AscendC::PipeBarrier<PIPE_V>();
    int32_t repeats = AscendC::CeilDivision(count, 64);
    AscendC::SetVectorMask<float>(0, (1ull << repeats) - 1);
    AscendC::RepeatReduceSum<float, false>(part, part, 1, AscendC::MASK_PLACEHOLDER, 0, 1, 1, 8);
    AscendC::ResetMask();
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::DataCopyPad(zGm, zLocal, copy);
    AscendC::DataCopyPad(sumGm, part, {1, 4, 0, 0, 0});
    AscendC::PipeBarrier<PIPE_ALL>();
}
