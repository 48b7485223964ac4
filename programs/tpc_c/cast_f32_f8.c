// f32 to f8_143 with a scale, clamped to the largest finite value: gaudi2. Index space: ceil(size 0 / 256), size 1.
static inline float64 scaled(float64 value, float scale, float largest)
{
    value = v_f32_min_b(value * scale, largest);
    return v_f32_max_b(value, -largest);
}

void main(tensor x, tensor y, float scale)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    const float largest = 240.0f;
    for (int row = start[1]; row < end[1]; row++)
    {
        for (int column = start[0] * 256; column < end[0] * 256; column += 256)
        {
            int5 at = {column, row};
            float256 quad;
            quad.v1 = scaled(v_f32_ld_tnsr_b(at, x), scale, largest);
            at[0] += 64;
            quad.v2 = scaled(v_f32_ld_tnsr_b(at, x), scale, largest);
            at[0] += 64;
            quad.v3 = scaled(v_f32_ld_tnsr_b(at, x), scale, largest);
            at[0] += 64;
            quad.v4 = scaled(v_f32_ld_tnsr_b(at, x), scale, largest);
            at[0] = column;
            v_f8_st_tnsr(at, y, v_convert_f32_to_f8_all_b(quad, SW_RHNE), SW_PACK | SW_PCK_32_TO_8);
        }
    }
}
