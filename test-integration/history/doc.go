// Package history checks what a driver was asked for against the pools of its nodes. A
// history has each call that takes room or gives it back: when it began, when it ended, and what
// came out. It is legal if the calls can be put in an order, each at a moment between its begin and
// its end, in which no pool has more volumes than fit, each volume is once on a node, and a volume
// is only refused where no pool has room for it.
//
// Such a refusal is somebody's mistake: whoever sent the volume there. [Rules] says how many of them
// a run may have, which is none if the scheduler can know what is free.
package history
