// A causal filter along rows with a state: event ids taken and given back, two buffers in turn, products added up.
#include "kernel_operator.h"
using namespace AscendC;
#define ALLOC_EVENT(E) static_cast<event_t>(GetTPipePtr()->AllocEventID<HardEvent::E>())
enum class Activation : uint8_t { NONE = 0, SILU = 1 };

struct ConvStateTilingData {
    int32_t steps;
    int32_t channels;
    int32_t width;
    uint8_t activation;
};

template <typename T, Activation ACT>
class ConvState {
    static constexpr int32_t MOST_TAPS = 4;
public:
    __aicore__ inline explicit ConvState(const ConvStateTilingData &tiling) : tiling_(tiling) {}
    __aicore__ inline void Run(GM_ADDR x, GM_ADDR weight, GM_ADDR y)
    {
        const int32_t c = tiling_.channels;
        xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(x));
        weightGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(weight));
        yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(y));
        GetTPipePtr()->InitBuffer(in_, 2 * c * sizeof(T));
        GetTPipePtr()->InitBuffer(ring_, MOST_TAPS * c * sizeof(float));
        GetTPipePtr()->InitBuffer(weights_, MOST_TAPS * c * sizeof(float) * 2);
        GetTPipePtr()->InitBuffer(out_, 2 * c * sizeof(T));
        GetTPipePtr()->InitBuffer(sum_, 2 * c * sizeof(float));
        const event_t toV = ALLOC_EVENT(MTE2_V);
        const event_t toIn[2] = {ALLOC_EVENT(V_MTE2), ALLOC_EVENT(V_MTE2)};
        const event_t toOut = ALLOC_EVENT(V_MTE3);
        const event_t freed[2] = {ALLOC_EVENT(MTE3_V), ALLOC_EVENT(MTE3_V)};
        LocalTensor<float> w = weights_.Get<float>(), ring = ring_.Get<float>(), sum = sum_.Get<float>();
        LocalTensor<T> narrow = w[MOST_TAPS * c].template ReinterpretCast<T>();
        DataCopy(narrow, weightGm_, tiling_.width * c);
        SetFlag<HardEvent::MTE2_V>(toV);
        WaitFlag<HardEvent::MTE2_V>(toV);
        Cast(w, narrow, RoundMode::CAST_NONE, tiling_.width * c);
        Duplicate(ring, 0.0f, MOST_TAPS * c);
        for (int32_t turn = 0; turn < 2; ++turn) {
            SetFlag<HardEvent::V_MTE2>(toIn[turn]);
            SetFlag<HardEvent::MTE3_V>(freed[turn]);
        }
        for (int32_t step = 0; step < tiling_.steps; ++step) {
            const int32_t turn = step & 1;
            LocalTensor<T> in = in_.Get<T>()[turn * c], out = out_.Get<T>()[turn * c];
            WaitFlag<HardEvent::V_MTE2>(toIn[turn]);
            DataCopy(in, xGm_[step * c], c);
            SetFlag<HardEvent::MTE2_V>(toV);
            WaitFlag<HardEvent::MTE2_V>(toV);
            LocalTensor<float> own = ring[(step % MOST_TAPS) * c];
            Cast(own, in, RoundMode::CAST_NONE, c);
            SetFlag<HardEvent::V_MTE2>(toIn[turn]);
            PipeBarrier<PIPE_V>();
            Mul(sum, own, w[(tiling_.width - 1) * c], c);
            PipeBarrier<PIPE_V>();
            for (int32_t tap = 1; tap < tiling_.width; ++tap) {
                LocalTensor<float> past = ring[((step - tap + MOST_TAPS) % MOST_TAPS) * c];
                MulAddDst(sum, past, w[(tiling_.width - 1 - tap) * c], c);
                PipeBarrier<PIPE_V>();
            }
            if constexpr (ACT == Activation::SILU) {
                LocalTensor<float> gate = sum[c];
                Muls(gate, sum, -1.0f, c);
                PipeBarrier<PIPE_V>();
                Exp(gate, gate, c);
                PipeBarrier<PIPE_V>();
                Adds(gate, gate, 1.0f, c);
                PipeBarrier<PIPE_V>();
                Div(sum, sum, gate, c);
                PipeBarrier<PIPE_V>();
            }
            WaitFlag<HardEvent::MTE3_V>(freed[turn]);
            Cast(out, sum, RoundMode::CAST_RINT, c);
            SetFlag<HardEvent::V_MTE3>(toOut);
            WaitFlag<HardEvent::V_MTE3>(toOut);
            DataCopy(yGm_[step * c], out, c);
            SetFlag<HardEvent::MTE3_V>(freed[turn]);
        }
        for (int32_t turn = 0; turn < 2; ++turn) {
            WaitFlag<HardEvent::V_MTE2>(toIn[turn]);
            WaitFlag<HardEvent::MTE3_V>(freed[turn]);
            GetTPipePtr()->ReleaseEventID<HardEvent::V_MTE2>(toIn[turn]);
            GetTPipePtr()->ReleaseEventID<HardEvent::MTE3_V>(freed[turn]);
        }
        GetTPipePtr()->ReleaseEventID<HardEvent::MTE2_V>(toV);
        GetTPipePtr()->ReleaseEventID<HardEvent::V_MTE3>(toOut);
    }

private:
    const ConvStateTilingData &tiling_;
    TBuf<TPosition::VECCALC> in_, ring_, weights_, out_, sum_;
    GlobalTensor<T> xGm_, weightGm_, yGm_;
};

template <typename T>
__global__ __aicore__ void conv_state(GM_ADDR x, GM_ADDR weight, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(ConvStateTilingData);
    GET_TILING_DATA_WITH_STRUCT(ConvStateTilingData, tilingData, tiling);
    TPipe pipe;
    if (tilingData.activation == static_cast<uint8_t>(Activation::SILU)) {
        ConvState<T, Activation::SILU>(tilingData).Run(x, weight, y);
    } else {
        ConvState<T, Activation::NONE>(tilingData).Run(x, weight, y);
    }
}
