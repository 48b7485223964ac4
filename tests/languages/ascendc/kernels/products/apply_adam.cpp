// A step of Adam: scalars from global memory, narrow inputs behind the room of their wide copies, many queues.
#include "kernel_operator.h"
#include "op_host/apply_adam_tiling.h"
using namespace AscendC;

constexpr int32_t ONE = 1;
constexpr uint32_t BUFFER = 1;
template <typename T>
class ApplyAdam {
public:
    __aicore__ inline ApplyAdam() = default;
    __aicore__ inline void Init(GM_ADDR var, GM_ADDR m, GM_ADDR v, GM_ADDR power, GM_ADDR rates, GM_ADDR grad, GM_ADDR out,
                                GM_ADDR mOut, GM_ADDR vOut, const ApplyAdamTilingData &tiling)
    {
        this->tiling_ = tiling;
        count_ = tiling.usedCoreNum > GetBlockIdx() ? tiling.total : 0;
        gmVar_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(var));
        gmM_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(m));
        gmV_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(v));
        gmGrad_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(grad));
        gmOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(out));
        gmMOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(mOut));
        gmVOut_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(vOut));
        GlobalTensor<float> power_, rates_;
        power_.SetGlobalBuffer((__gm__ float *)power);
        rates_.SetGlobalBuffer((__gm__ float *)rates);
        beta1Power_ = static_cast<float>(power_.GetValue(0));
        beta2Power_ = static_cast<float>(power_.GetValue(1));
        lr_ = rates_.GetValue(0), beta1_ = rates_.GetValue(1), beta2_ = rates_.GetValue(2), epsilon_ = rates_.GetValue(3);
        uint32_t bytes = tiling_.tile * sizeof(float);
        pipe_.InitBuffer(inVar_, BUFFER, bytes);
        pipe_.InitBuffer(inM_, BUFFER, bytes);
        pipe_.InitBuffer(inV_, BUFFER, bytes);
        pipe_.InitBuffer(inGrad_, BUFFER, bytes);
        pipe_.InitBuffer(outVar_, BUFFER, bytes);
        pipe_.InitBuffer(outM_, BUFFER, bytes);
        pipe_.InitBuffer(outV_, BUFFER, bytes);
        pipe_.InitBuffer(work_, bytes);
    }
    __aicore__ inline void Process()
    {
        float rate = lr_ * sqrt(ONE - beta2Power_) / (ONE - beta1Power_);
        for (uint32_t at = 0; at < count_; at += tiling_.tile) {
            uint32_t n = (count_ - at) < tiling_.tile ? (count_ - at) : tiling_.tile;
            Load(inVar_, gmVar_[at], n);
            Load(inM_, gmM_[at], n);
            Load(inV_, gmV_[at], n);
            Load(inGrad_, gmGrad_[at], n);
            Step(n, rate);
            Store(gmOut_[at], outVar_, n);
            Store(gmMOut_[at], outM_, n);
            Store(gmVOut_[at], outV_, n);
        }
    }

private:
    template <typename Q>
    __aicore__ inline void Load(Q &queue, const GlobalTensor<T> &gm, uint32_t n)
    {
        LocalTensor<T> local = queue.template AllocTensor<T>();
        uint32_t behind = sizeof(T) == sizeof(half) ? tiling_.tile : 0;
        DataCopyExtParams params;
        params.blockCount = 1;
        params.blockLen = n * sizeof(T);
        params.srcStride = 0;
        params.dstStride = 0;
        DataCopyPad(local[behind], gm, params, {false, 0, 0, 0});
        queue.EnQue(local);
    }
    template <typename Q>
    __aicore__ inline LocalTensor<float> Wide(Q &queue, uint32_t n)
    {
        LocalTensor<T> local = queue.template DeQue<T>();
        LocalTensor<float> wide = local.template ReinterpretCast<float>();
        if constexpr (sizeof(T) == sizeof(half)) {
            Cast(wide, local[tiling_.tile], RoundMode::CAST_NONE, n);
            PipeBarrier<PIPE_V>();
        }
        return wide;
    }
    template <typename Q>
    __aicore__ inline void Emit(Q &queue, const LocalTensor<float> &wide, uint32_t n)
    {
        LocalTensor<T> local = queue.template AllocTensor<T>();
        if constexpr (IsSameType<T, float>::value) {
            Adds(local, wide, (float)0.0, n);
        } else {
            Cast(local, wide, RoundMode::CAST_RINT, n);
        }
        queue.template EnQue<T>(local);
    }
    __aicore__ inline void Step(uint32_t n, float rate)
    {
        LocalTensor<float> var = Wide(inVar_, n), m = Wide(inM_, n), v = Wide(inV_, n), grad = Wide(inGrad_, n);
        LocalTensor<float> work = work_.Get<float>();
        Muls(m, m, beta1_, n);
        Muls(work, grad, 1 - beta1_, n);
        PipeBarrier<PIPE_V>();
        m = m + work;
        Mul(grad, grad, grad, n);
        Muls(v, v, beta2_, n);
        Muls(grad, grad, ONE - beta2_, n);
        PipeBarrier<PIPE_V>();
        Add(v, v, grad, n);
        PipeBarrier<PIPE_V>();
        Sqrt(work, v, n);
        PipeBarrier<PIPE_V>();
        Adds<float>(work, work, epsilon_, n);
        Muls(grad, m, rate, n);
        PipeBarrier<PIPE_V>();
        Div(work, grad, work, n);
        PipeBarrier<PIPE_V>();
        Sub(var, var, work, n);
        PipeBarrier<PIPE_V>();
        Emit(outVar_, var, n);
        Emit(outM_, m, n);
        Emit(outV_, v, n);
        inVar_.FreeTensor(var);
        inM_.FreeTensor(m);
        inV_.FreeTensor(v);
        inGrad_.FreeTensor(grad);
    }
    template <typename Q>
    __aicore__ inline void Store(const GlobalTensor<T> &gm, Q &queue, uint32_t n)
    {
        LocalTensor<T> local = queue.template DeQue<T>();
        DataCopyPad(gm, local, {1, (uint32_t)(n * sizeof(T)), 0, 0, 0});
        queue.FreeTensor(local);
    }
    TPipe pipe_;
    TQue<TPosition::VECIN, BUFFER> inVar_, inM_, inV_, inGrad_;
    TQue<TPosition::VECOUT, BUFFER> outVar_, outM_, outV_;
    TBuf<> work_;
    GlobalTensor<T> gmVar_, gmM_, gmV_, gmGrad_, gmOut_, gmMOut_, gmVOut_;
    float beta1Power_, beta2Power_, lr_, beta1_, beta2_, epsilon_;
    uint32_t count_;
    ApplyAdamTilingData tiling_;
};

extern "C" __global__ __aicore__ void apply_adam(GM_ADDR var, GM_ADDR m, GM_ADDR v, GM_ADDR power, GM_ADDR rates, GM_ADDR grad,
                                                 GM_ADDR out, GM_ADDR mOut, GM_ADDR vOut, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    if (TILING_KEY_IS(101)) {
        ApplyAdam<float> op;
        op.Init(var, m, v, power, rates, grad, out, mOut, vOut, tilingData);
        op.Process();
    } else if (TILING_KEY_IS(102)) {
        ApplyAdam<half> op;
        op.Init(var, m, v, power, rates, grad, out, mOut, vOut, tilingData);
        op.Process();
    }
}
