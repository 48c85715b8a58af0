package measure

import "math"

// normalQuantile is the 97.5 % quantile of the normal distribution.
const normalQuantile = 1.959963984540054

// studentQuantile is the t that a variable of Student's distribution exceeds
// in size with the probability beyond. It bisects the angle θ, t = √df·tan θ.
func studentQuantile(beyond float64, df int) float64 {
	low, high := 0.0, math.Pi/2
	for range 60 {
		middle := (low + high) / 2
		if 1-studentWithin(middle, df) > beyond {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(float64(df)) * math.Tan(high)
}

// studentWithin is P(|T| < √df·tan θ): the finite series of Abramowitz and
// Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
func studentWithin(angle float64, df int) float64 {
	sin, cos := math.Sincos(angle)
	odd := df % 2
	term, sum := 1.0, 0.0
	if odd == 1 {
		term = cos
	}
	for k := 2 + odd; k <= df; k += 2 {
		sum += term
		term *= cos * cos * float64(k-1) / float64(k)
	}
	if odd == 1 {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}
