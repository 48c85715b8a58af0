package measure

import (
	"math"
	"testing"
)

// TestStudentQuantile holds scipy's: t.ppf(1 - beyond/2, df) of scipy 1.17.1.
func TestStudentQuantile(t *testing.T) {
	beyond := []float64{0.05, 0.01, 0.05 / 12, 0.4, 1e-6}
	for df, want := range map[int][]float64{
		1:   {12.7062047, 63.6567412, 152.786564, 1.37638192, 636619.772},
		2:   {4.30265273, 9.9248432, 15.443479, 1.06066017, 999.99925},
		3:   {3.18244631, 5.84090931, 7.93975073, 0.978472312, 130.15459},
		4:   {2.77644511, 4.60409487, 5.88530508, 0.940964577, 49.4586368},
		9:   {2.26215716, 3.24983554, 3.80787844, 0.88340386, 11.636782},
		100: {1.98397152, 2.62589052, 2.93266079, 0.845230424, 5.21372757},
		999: {1.96234146, 2.58075964, 2.87187802, 0.841981182, 4.92232037},
	} {
		for i, b := range beyond {
			if got := studentQuantile(b, df); math.Abs(got/want[i]-1) > 1e-8 {
				t.Errorf("t exceeded with %g, %d degrees of freedom: got %.9g, want %.9g", b, df, got, want[i])
			}
		}
	}
}
