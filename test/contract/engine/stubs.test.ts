import { CubeStub } from './stubs/cubesandbox.ts';
import { E2BStub } from './stubs/e2b.ts';
import { cubeContract } from './suite.cubesandbox.ts';
import { e2bContract } from './suite.e2b.ts';
import { freshDigest } from './suite.ts';

const image = `registry.example.com/skills/pdf@${freshDigest()}`;

e2bContract({
  real: false,
  image,
  open: async () => {
    const stub = await new E2BStub().listen();
    return {
      url: stub.url,
      key: 'e2b_aaaaaaaaaaaaaaaa',
      stub,
      [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose](),
    };
  },
});

cubeContract({
  real: false,
  image,
  open: async () => {
    const stub = await new CubeStub().listen();
    return { url: stub.url, key: undefined, stub, [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose]() };
  },
});
