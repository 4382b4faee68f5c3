// SPDX-License-Identifier: Apache-2.0

// Package store has what is on the disks of one node: the data of copies of volumes, and the records that say what they are.
//
//	OWN/owner                     the name of the node
//	OWN/records/KEY.json          one for each copy
//	OWN/disks/POOL                the ID of the disk of a pool
//	OWN/pools/POOL/id             the same, on the disk
//	OWN/pools/POOL/volumes/KEY    the data of a copy, a file as large as the volume
//
// A pool is a disk that is mounted at OWN/pools/POOL. A KEY is a hash of the volume's handle, and the name of the copy. Only
// the driver of the node writes in OWN; those of other nodes read it ([Peer]).
//
// What is not mounted is not taken for empty: the owner and the IDs have to be there. Who sets up the node writes the owner; an
// ID is made once, for a pool that has none.
//
// The file of a copy is what takes its room: it is allocated when its record is made, and before anything else is. Nothing is
// kept in memory. So a record that cannot be read costs its volume, and its room stays used, as that of all other files.
//
// Calls for a disk go on one after the other, and nobody waits for longer than he wants ([Lane]). A disk that hangs costs its
// pool.
package store
