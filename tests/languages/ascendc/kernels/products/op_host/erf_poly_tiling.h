#ifndef ERF_POLY_TILING_H
#define ERF_POLY_TILING_H
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
struct ErfPolyCompileInfo {
  uint32_t coreNum = 0;
};
BEGIN_TILING_DATA_DEF(ErfPolyTilingData)
TILING_DATA_FIELD_DEF(uint32_t, blockLength);  // elements of a core
TILING_DATA_FIELD_DEF(uint32_t, tileNum);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ErfPoly, ErfPolyTilingData)
}
#endif
