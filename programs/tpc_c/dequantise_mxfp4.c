// mxfp4 to bf16: two e2m1 codes in a byte, the lower half first, one power of two (its biased exponent) for 32 elements.
// Tensors: codes u8 [elements / 2, rows], exponents i32 [elements / 32, rows], y bf16 [elements, rows].
// gaudi2. Index space: elements / 128, rows.
static inline float64 value_of(int64 code, float64 power)
{
    int64 exponent = (code >> 1) & 3;
    int64 fraction = code & 1;
    int64 normal = ((exponent + 126) << 23) | (fraction << 22);
    int64 small = fraction * 0x3f000000;
    int64 bits = v_i32_sel_eq_i32_b(exponent, 0, small, normal);
    bits |= (code & 8) << 28;
    return as_float64(bits) * power;
}

void main(tensor codes, tensor exponents, tensor y)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    const uint64 lane = V_LANE_ID_32;
    for (int row = start[1]; row < end[1]; row++)
    {
        for (int block = start[0]; block < end[0]; block++)
        {
            int5 at = {block * 64, row};
            int256 bytes = v_convert_u8_to_i32_all_b(v_u8_ld_tnsr_b(at, codes, SW_UNPACK | SW_UNPCK_8_TO_32));
            int64 powers[4];
            for (int k = 0; k < 4; k++)
            {
                int5 place = {block * 4 + k, row};
                powers[k] = v_i32_ld_g((__global__ int *)gen_addr(place, exponents)) << 23;
            }
            int64 bits = v_i32_sel_less_u32_b(lane, 16, powers[0], powers[1]);
            int64 more = v_i32_sel_less_u32_b(lane, 48, powers[2], powers[3]);
            float64 power = as_float64(v_i32_sel_less_u32_b(lane, 32, bits, more));
            float128 pair;
            pair.v1 = value_of(bytes.v1 & 15, power);
            pair.v2 = value_of(bytes.v1 >> 4, power);
            at[0] = block * 128;
            v_bf16_st_tnsr(at, y, v_convert_f32_to_bf16_all_b(pair));
        }
    }
}
