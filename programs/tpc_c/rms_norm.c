// y = x * gain / sqrt(mean(x * x) + epsilon). The inverse root starts from halved exponents and takes four steps of
// Newton, so that no look-up table is needed. Index space: 1, rows.
static inline float64 inverse_root(float64 value)
{
    float64 half = value * 0.5f;
    float64 guess = as_float64(0x5f3759df - (as_int64(value) >> 1));
    for (int step = 0; step < 4; step++)
    {
        float64 rest = v_f32_mac_b(half * guess, guess, 1.5f, SW_NEG);
        guess = guess * rest;
    }
    return guess;
}

void main(tensor x, tensor gain, tensor y, float inverse_width, float epsilon)
{
    const int5 start = get_index_space_offset();
    const int5 end = get_index_space_size() + start;
    const int width = get_dim_size(x, 0);
    for (int row = start[1]; row < end[1]; row++)
    {
        int5 at = {0, row};
        float64 sum = 0.0f;
        for (int column = 0; column < width; column += 64)
        {
            at[0] = column;
            float64 part = v_f32_ld_tnsr_b(at, x);
            sum = v_f32_mac_b(part, part, sum);
        }
        sum = v_f32_reduce_add(sum);
        float64 factor = inverse_root(sum * inverse_width + epsilon);
        for (int column = 0; column < width; column += 64)
        {
            int5 place = {column};
            at[0] = column;
            v_f32_st_tnsr(at, y, v_f32_ld_tnsr_b(at, x) * factor * v_f32_ld_tnsr_b(place, gain));
        }
    }
}
