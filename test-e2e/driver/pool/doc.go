// Package pool keeps the books of the pools of one node: which volumes there are,
// in which pool, and how much room is left.
//
// All of it is on disk, and nothing in memory: each call locks the folder of the
// node, reads what is there, and changes one file at a time, atomically. So a driver
// that is killed leaves the state before or after a step, never half of one. The drivers
// of other nodes read the books where they can reach the folder, and fence copies in them.
// What another node has written is not believed: no record has a path, names are checked,
// links are not followed, and a node removes nothing but its own copies.
//
//	ROOT/books/NODE/ID.json           one file for each volume
//	ROOT/books/NODE/ID.copying        while a copy is made: data that is in no books may be removed
//	ROOT/books/NODE/NAME.pool         says that the folder of a pool was made, on the disk with an ID
//	ROOT/pools/NODE/NAME/id           that ID
//	ROOT/pools/NODE/NAME/volumes/ID   the data of a volume
//
// A pool is a disk that is mounted at ROOT/pools/NODE/NAME. Its folder is made once, so a disk that is not
// mounted later has none: its pool has no room, and what is on it is not removed. It is the same if another disk
// is mounted there, which has not the ID. The books are not on it, and removing data needs no room, so a disk that is
// full can be emptied.
package pool
