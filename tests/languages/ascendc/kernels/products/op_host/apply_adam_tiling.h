#ifndef APPLY_ADAM_TILING_H
#define APPLY_ADAM_TILING_H
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ApplyAdamTilingData)
  TILING_DATA_FIELD_DEF(int64_t, usedCoreNum);
  TILING_DATA_FIELD_DEF(uint32_t, total);
  TILING_DATA_FIELD_DEF(uint32_t, tile);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ApplyAdam, ApplyAdamTilingData)
}  // namespace optiling
using optiling::ApplyAdamTilingData;
#endif
