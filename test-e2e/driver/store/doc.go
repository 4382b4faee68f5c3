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
// What is not mounted is not taken for empty: the owner and the IDs have to be there. They are made once, for a node that has
// no volumes by the API server, and for a pool that has no ID.
//
// Each disk has a lock and a goroutine of its own. One that hangs costs its pool, and a record that cannot be read costs its
// volume; its room stays used, as that of all data that is in no record.
package store
