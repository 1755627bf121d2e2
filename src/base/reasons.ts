/**
 * The closed catalogue of reasons that a condition, an event or an entry of `problems` can carry.
 * Each has a line in docs/errors.md with the fix; a test checks both directions.
 * Values: one sentence that says what the reader sees when the reason is set.
 */
export const REASONS = {
  // Outcomes
  Succeeded: 'The last pass finished and the status describes what the spec asks for.',
  Progressing: 'A pass is under way.',
  ProgressingWithRetry: 'The last pass failed in a way that usually heals; the operator tries again by itself.',
  Suspended: 'spec.suspend is true: nothing is fetched, built or registered.',
  AllSkillsReady: 'Every Skill of this source serves what the source points at.',
  SomeSkillsNotReady: 'At least one Skill of this source is not Ready; the counts say how many and why.',
  NotSupportedYet: 'The spec uses a field or a source type that this release does not handle.',

  // Spec and references
  InvalidSpec: 'The spec passes the schema but cannot be carried out.',
  URLInvalid: 'The repository URL is not an https, http or ssh URL that the operator accepts.',
  RefInvalid: 'The ref is not a valid Git ref name, commit id or semver range.',
  PathInvalid: 'The path is not a clean relative path.',
  SecretNotFound: 'The Secret that the spec names does not exist in this namespace.',
  SecretInvalid: 'The Secret lacks a key, or a key holds something the operator cannot use.',
  SecretHostNotAllowed: 'The Secret is annotated with the hosts it may be sent to, and this URL is not one of them.',
  WebhookDisabled: 'The source names a webhook Secret, and this installation receives no webhooks.',
  SourceNotFound: 'The MarketplaceSource that the Skill names does not exist in this namespace.',

  // Git
  AuthenticationFailed: 'The Git server refused the credentials, or asked for some and none were given.',
  HostKeyMismatch: 'The ssh server shows another host key than known_hosts lists.',
  HostKeyUnknown: 'known_hosts has no key for the ssh server.',
  TLSVerificationFailed: 'The certificate of the Git server is not trusted.',
  RepositoryNotFound: 'The Git server has no such repository, or hides it from these credentials.',
  RefNotFound: 'The repository has no such branch, tag, ref, commit or matching semver tag.',
  EmptyRepository: 'The repository has no commit.',
  PathNotFound: 'The sub-directory of a git-subdir source does not exist at this commit.',
  GitUnreachable: 'No connection to the Git server.',
  GitTimeout: 'The Git server did not answer within spec.timeout.',
  GitRateLimited: 'The Git server asks to slow down.',
  GitOperationFailed: 'Git failed for a reason that has no name of its own.',
  RepositoryTooLarge: 'The fetched repository exceeds the operator limit on disk or objects.',
  RedirectRefused: 'The Git server redirects; credentials are never sent on.',
  MirrorCorrupt: 'The local mirror could not be read and is fetched anew.',

  // Discovery
  NoSkillsFound: 'The commit has no plugins/<plugin>/skills/<skill>/SKILL.md below the root of the source.',
  SkillMdMissing: 'A directory at skill depth has no SKILL.md.',
  SkillMdWrongCase: 'The file is not named exactly SKILL.md.',
  SubmoduleNotSupported: 'A Git submodule stands where a plugin or skill directory is expected.',
  SymlinkNotSupported: 'A symbolic link stands where a plugin or skill directory is expected.',
  NameUnusable: 'A plugin or skill directory has a name that cannot be a path of the protocol.',
  NameClash: 'An object of that name exists and belongs to somebody else; it is left alone.',
  PruneBlocked: 'So many Skills vanished at once that nothing is deleted until the revision is allowed.',
  TooManySkills: 'The commit holds more skills than one source may bring.',

  // Skill
  Invalid: 'The content breaks rules of the SKILL protocol; status.violations lists file, line and fix.',
  Valid: 'The content follows the SKILL protocol.',
  Stored: 'The package is in the bucket and verified.',
  ServingVersion: 'A version is served; status.served names it.',
  NothingServed: 'No version has become servable yet.',
  TreeGone: 'The commit or directory that the Skill points at can no longer be fetched.',
  NameConflict: 'Another Skill of this namespace holds the same bare name.',
  BuildNotConfigured: 'The skill brings its own image and this installation has no image builds configured.',
  RemovalPending: 'An earlier image or template of the same content has to be gone before it can be built again.',
  TemplateNotConfigured: 'The map of platform templates has no entry for this runtime.',
  PackageLost: 'The store lost the served package and Git no longer offers its content.',
  Registered: 'The template id is known.',
  NotRequired: 'The runtime of this skill does not need this step.',

  // Store
  StoreUnavailable: 'No connection to the S3 store, or it answers with server errors.',
  StoreTimeout: 'The S3 store did not answer in time.',
  StoreAccessDenied: 'The S3 store refuses the key or the action.',
  StoreBucketNotFound: 'The bucket does not exist.',
  StoreClockSkew: 'The clocks of the operator and the S3 store differ too much.',
  StoreAnonymousWrites: 'The bucket lets everybody write.',
  StoreCorrupt: 'A stored object does not have the digest that its name promises.',
  StoreConfigInvalid: 'The store endpoint or bucket in the configuration cannot be used.',
  SweepBlocked: 'The sweep would delete so much at once that it waits for a person.',
  StoreSuspect: 'So many packages are missing in the bucket that nothing is stored again until a person has looked.',

  // Engines
  EngineNotConfigured: 'The skill needs a sandbox engine that this installation has not configured.',
  EngineConfigInvalid: 'The URL, the CA bundle or a setting of the engine in the configuration cannot be used.',
  EngineUnavailable: 'engine unavailable: no connection to the sandbox engine, or it answers with server errors.',
  EngineAuthFailed: 'The sandbox engine refuses the key.',
  EngineBusy: 'The sandbox engine asks to slow down or has too many builds at once.',
  EngineRejected: 'The sandbox engine refuses the template as it is described.',
  EngineConflict: 'The name of the template cannot be used at the engine.',
  EngineUnexpectedAnswer: 'The sandbox engine answered something that the operator does not understand.',
  EngineStuck: 'The sandbox engine did not finish the template within the deadline.',
  EngineBuildFailed: 'The sandbox engine could not make a template of the image.',
  EngineImagePullFailed: 'The sandbox engine could not pull the image.',
  EngineOutOfSpace: 'The sandbox engine has no disk space left for the template.',
  TemplateNotFound: 'The sandbox engine does not know the template id.',
  TemplateInUse: 'The template cannot be removed while sandboxes or a build use it.',
  TemplateForeign: 'The template at the engine does not carry the name of this Skill and is left alone.',
  EngineSuspect: 'The engine lost so many templates that none is registered again until a person has looked.',

  // Image builds
  BuildConfigInvalid: 'The build settings of this installation cannot be used.',
  BuildQueued: 'The image waits for a free build slot.',
  BuildPodForbidden: 'The build namespace does not let the build pod be created.',
  BuildPodNotStarted: 'The build pod was created and does not start.',
  BuildImagePullFailed: 'A node cannot pull the builder image or the image of the operator.',
  BuildUnschedulable: 'No node has room for the build pod.',
  BuildInterrupted: 'The build was cut off from outside: eviction, lost node, deleted pod.',
  BuildOutOfMemory: 'The build used more memory than its limit.',
  BuildOutOfDisk: 'The build used more disk than its limit.',
  BuildTimeout: 'The build did not end within its deadline.',
  BuildContextRefused: 'The store did not hand the package out to the build pod.',
  BuildContextUnreachable: 'The build pod could not reach the store.',
  BuildCommandFailed: 'A RUN command of the Dockerfile failed.',
  BuildFailed: 'The image cannot be built from this Dockerfile.',
  BaseImageRefused: 'A registry does not hand out an image that the Dockerfile names.',
  BaseImageUnavailable: 'Something that the Dockerfile downloads could not be had.',
  ImageTooLarge: 'The built image is larger than 5 GB, or what the administrator allows.',
  ImageInvalid: 'The build did not leave exactly one usable image.',
  ImageNotConfirmed: 'The registry does not show the image that the build says it pushed.',
  RegistryUnavailable: 'No connection to the image registry, or it answers with server errors.',
  RegistryRateLimited: 'The image registry asks to slow down.',
  RegistryAuthFailed: 'The image registry does not accept the credential.',
  RegistryDenied: 'The image registry refuses the action or the name of the repository.',
  RegistryConfigInvalid: 'Address, certificate or Secret of the image registry cannot be used.',
  RegistryUnexpectedAnswer: 'The image registry answered something that the operator does not understand.',
  RegistryAnonymousWrites: 'The image registry lets everybody push.',

  // Kubernetes API and the operator itself
  Forbidden: 'The operator may not do this in the cluster; its ClusterRole is incomplete.',
  ApiUnavailable: 'The Kubernetes API did not answer or asked to wait.',
  ApplyRejected: 'The API server refused an object that the operator applied.',
  Conflict: 'The object changed between reading and writing; the pass runs again.',
  InternalError: 'A defect of the operator; the log holds the stack.',
} as const satisfies Record<string, string>;

/** A reason of the catalogue. */
export type Reason = keyof typeof REASONS;
