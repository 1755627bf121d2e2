/** The parts of a CycloneDX document that this project looks at. */
export interface Bom {
  specVersion: string;
  metadata: { component: { name: string; 'bom-ref': string } };
  components: { purl: string; 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** The parts of package-lock.json that this project looks at. */
export interface Lock {
  packages: Record<string, { version?: string; dev?: boolean; optional?: boolean }>;
}

/** Package URLs of what the programs are bundled from: nothing for development, and nothing optional, which stays outside of the bundles. */
function bundledPackages(lock: Lock): string[] {
  const urls = Object.entries(lock.packages)
    .filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
    .map(([path, { version }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return `pkg:npm/${name.replace('@', '%40')}@${version}`;
    });
  return [...new Set(urls)].sort();
}

/**
 * What npm tells of the lock file, cut down to the bundled packages and named as the project (npm writes the name of the folder).
 * npm's own `--omit=dev` also leaves out packages that a bundled one and one for development share.
 * @throws Error when a bundled package is missing in it.
 */
export function billOf(bom: Bom, name: string, lock: Lock): Bom {
  const wanted = new Set(bundledPackages(lock));
  const components = bom.components.filter(({ purl }) => wanted.has(purl));
  const missing = [...wanted].filter((purl) => !components.some((component) => component.purl === purl));
  if (missing.length > 0)
    throw new Error(`npm sbom does not know ${missing.join(', ')}; run it with npm 10.5 or newer`);
  const root = bom.metadata.component['bom-ref'];
  const kept = new Set([root, ...components.map((component) => component['bom-ref'])]);
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...bom.metadata.component, name } },
    components,
    dependencies: bom.dependencies
      .filter(({ ref }) => kept.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) })),
  };
}
