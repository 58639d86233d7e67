/* Box-Muller in blocks of 16 uniform numbers, which become normal ones: see random_boxmuller.py, whose roundings these are.
 *
 * Read once for each way to do a product and a sum that are rounded once, with STEP and BOX_MULLER defined, and with other products and sums
 * rounded one by one (-ffp-contract=off). An angle loses multiples of pi / 4 in three parts, the first two without rounding.
 */
BOX_MULLER(f32 *p, i64 blocks) {
    static const f32 L[9] = {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                             -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
    for (i64 b = 0; b < blocks; b++, p += 16) {
        SIMD
        for (int i = 0; i < 8; i++) {
            union {
                f32 f;
                i32 i;
            } u, s, c;
            u.f = 1.f - p[i];
            i32 e = (u.i - 0x3F3504F3) >> 23;
            u.i = u.i - (i32)((u32)e << 23);
            f32 v = u.f - 1.f, power = (f32)e, y = STEP(L[0], v, L[1]);
            y = STEP(y, v, L[2]), y = STEP(y, v, L[3]), y = STEP(y, v, L[4]), y = STEP(y, v, L[5]), y = STEP(y, v, L[6]);
            y = STEP(y, v, L[7]), y = STEP(y, v, L[8]);
            f32 square = v * v, low = power * -2.12194440e-4f;
            y = y * v;
            y = STEP(y, square, low);
            y = y - square * 0.5f;
            f32 radius = __builtin_sqrtf(((v + y) + power * 0.693359375f) * -2.f);
            f32 x = p[i + 8] * 6.28318530717958647692f;
            i32 octant = ((i32)(x * 1.27323954473516f) + 1) & -2;
            f32 turn = (f32)octant;
            x = STEP(turn, -0.78515625f, x), x = STEP(turn, -2.4187564849853515625e-4f, x), x = STEP(turn, -3.77489497744594108e-8f, x);
            f32 z = x * x;
            f32 cosine = STEP(2.443315711809948e-005f, z, -1.388731625493765e-003f);
            cosine = STEP(cosine, z, 4.166664568298827e-002f);
            cosine = cosine * z;
            cosine = STEP(cosine, z, z * -0.5f);
            cosine = cosine + 1.f;
            f32 sine = STEP(-1.9515295891e-4f, z, 8.3321608736e-3f);
            sine = STEP(sine, z, -1.6666654611e-1f);
            sine = sine * z;
            sine = STEP(sine, x, x);
            s.f = sine, c.f = cosine;
            i32 change = ((i32)((u32)(octant & 2) << 30) >> 31) & (s.i ^ c.i);
            s.i ^= change, c.i ^= change;
            s.i ^= (i32)((u32)(octant & 4) << 29);
            c.i ^= (i32)((u32)((octant + 2) & 4) << 29);
            p[i] = c.f * radius;
            p[i + 8] = s.f * radius;
        }
    }
}

#undef STEP
#undef BOX_MULLER
