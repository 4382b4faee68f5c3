// Package storagecapacity has the end-to-end specs of enhanced storage capacity tracking.
package storagecapacity
