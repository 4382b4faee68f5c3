// Package apiservertest starts kube-apiservers for black-box tests: the patched
// one inside of the test binary, and the stock one as a process, several times
// in a row or side by side on the same etcd.
//
// # Proof that a test tests something
//
// A test that stays green without the feature proves nothing. The environment
// variable CAPACITYV2_TARGET runs the same tests where they have to fail:
//
//   - (unset): the patched kube-apiserver, with the gates that each test asks for
//   - gate-off: the patched kube-apiserver, with CSIStorageCapacityV2 always off
//   - stock: the stock kube-apiserver in place of the patched one
//
// README.md of the module lists which test fails where.
package apiservertest
