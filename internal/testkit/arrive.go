package testkit

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Burst is the time within which the callers of one burst come, such as all claims of a file that is applied.
const Burst = 50 * time.Millisecond

// Arrive calls do for each of count callers, each in a goroutine of its own. They come within [Burst], in an order and with
// gaps that the seed decides. Arrive returns when all calls have returned.
func Arrive(seed uint64, count int, do func(caller int)) {
	chance := rand.New(rand.NewPCG(seed, uint64(count)))
	var callers sync.WaitGroup
	for _, caller := range chance.Perm(count) {
		callers.Go(func() { do(caller) })
		<-time.After(time.Duration(chance.Int64N(2 * int64(Burst) / int64(count))))
	}
	callers.Wait()
}
