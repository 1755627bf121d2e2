/** `make cluster`: an API server, S3 and Git of one's own, until Ctrl-C; with `--node` (root on Linux) pods run as well. */
import { serve } from './serve.ts';

// A KUBECONFIG in the environment may well be that of an earlier `make cluster`; here a new one is wanted.
await serve('', process.argv.includes('--node'));
