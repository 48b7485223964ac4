// In place of the helper header that kernels of huawei-csl/pto-kernels include and that is no part of PTO.
#pragma once

#include "castsim_pto.hpp"

namespace kernel_utils {

CASTSIM_CALL inline void PipeBarrierVec() { castsim::barrier(CASTSIM_HERE, PIPE_V); }

template <typename N, typename M> constexpr auto CeilDiv(N number, M divisor) { return (number + divisor - 1) / divisor; }
template <typename N, typename M> constexpr auto AlignUp(N number, M step) { return CeilDiv(number, step) * step; }

}  // namespace kernel_utils
