package claim

// Result of judging a claim.
type Result string

// The results that a claim can have.
const (
	Holds        Result = "holds"
	Fails        Result = "fails"
	Inconclusive Result = "inconclusive"
	NotRunnable  Result = "not runnable here"
)

// Judgement is what the samples say of one claim, in words that a page shows.
type Judgement struct {
	// Name of the claim, and Statement: the claim in one sentence.
	Name, Statement string
	// Paper says where the claim was made; it may be empty.
	Paper string
	// Kind is ORDER, RATIO, SLOPE, CROSSING or BOUND.
	Kind   string
	Result Result
	// Effect is the figure that decided with its interval: "1.05 [1.04, 1.06]".
	Effect string
	// Why says what decided: the cells, the bound, and for an inconclusive claim
	// how many more repetitions would settle it.
	Why string
}
