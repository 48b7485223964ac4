// Two passes over each row: the largest magnitude, then the row times the power of two that brings it into [1, 2).
// Rows of any length: what lies behind the tensor reads as 0. Index space: 1, rows.
void main(tensor x, tensor y, tensor largest)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    const int width = get_dim_size(x, 0);
    for (int row = start[1]; row < end[1]; row++)
    {
        int5 at = {0, row};
        float64 top = 0.0f;
        for (int column = 0; column < width; column += 64)
        {
            at[0] = column;
            top = v_f32_max_b(top, v_f32_abs_b(v_f32_ld_tnsr_b(at, x)));
        }
        top = v_f32_reduce_max(top);
        int5 one = {0, row};
        v_f32_st_tnsr(one, largest, top);
        int64 exponent = (as_int64(top) >> 23) & 255;
        int64 scale = (254 - exponent) << 23;
        scale = v_i32_sel_eq_i32_b(exponent, 0, 0x3f800000, scale);
        for (int column = 0; column < width; column += 64)
        {
            at[0] = column;
            v_f32_st_tnsr(at, y, v_f32_ld_tnsr_b(at, x) * as_float64(scale));
        }
    }
}
